"""The evidence for one pod, or for one owner outside Kubernetes, card by card: what `podgpu why -o json` prints."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from podgpu.insight.tenants import is_outsider
from podgpu.model import Allocation, Card, Charge, Claim, ContainerRef, Holder, Process, Snapshot, Tenant
from podgpu.views.json import Object, plain
from podgpu.views.tenants import named_containers

# The UUID of a MIG instance, or nothing, and a container, or None for a process whose container is not known.
_Key = tuple[str, ContainerRef | None]


class ContainerEvidence(Struct, frozen=True, kw_only=True):
    """One container of the pod on one card or instance. Without a `tenant`, its processes have no booking."""

    mig: str
    container: ContainerRef | None
    tenant: Tenant | None = None
    has_ended: bool = False
    processes: tuple[Process, ...] = ()

    @property
    def claims(self) -> tuple[Claim, ...]:
        return self.tenant.claims if self.tenant else ()


class PodEvidence:
    """Everything in a snapshot that concerns one pod, by its namespace and name.

    An owner outside Kubernetes has neither, but a title. `cards` are those that it holds or uses, with its containers.
    With `is_stored` there are only numbers, since a store keeps no evidence.
    """

    def __init__(self, snapshot: Snapshot, namespace: str, pod: str, title: str = "") -> None:
        self._name = (namespace, pod)
        self._title = title
        self.is_stored = snapshot.stored
        self.pods = {found.uid: found for found in snapshot.pods if (found.namespace, found.name) == self._name}
        self.unclaimed = [allocation for allocation in snapshot.unclaimed if self.owns(allocation)]
        self.unplaced = [held for held in snapshot.unplaced or () if self.owns(held.container)]
        refs = [ref for ref in named_containers(snapshot) if self.owns(ref)]
        self.uids = sorted({*self.pods, *(ref.pod_uid for ref in refs)} - {""})
        # A static pod's cgroup carries a hash in place of the UID.
        self._cgroup_uids = {*self.uids, *(found.static_hash for found in self.pods.values())} - {""}
        self.gpus = {card.gpu.uuid: card.gpu for card in snapshot.cards}
        found_on = ((card, self._containers(card)) for card in snapshot.cards)
        self.cards = [(card, containers) for card, containers in found_on if containers or any(self.charges(card))]

    def __bool__(self) -> bool:
        return bool(self.pods or self.unclaimed or self.unplaced or self.cards)

    def _containers(self, card: Card) -> list[ContainerEvidence]:
        ended, live = self._own_tenants(card.ended), self._own_tenants(card.tenants)
        tenants = ended | live
        unbooked = self._unbooked(card)
        return [
            ContainerEvidence(
                mig=key[0],
                container=key[1],
                tenant=(tenant := tenants.get(key)),
                has_ended=key in ended and key not in live,
                processes=(*(tenant.processes if tenant else ()), *unbooked.get(key, ())),
            )
            for key in sorted({*tenants, *unbooked}, key=_order)
        ]

    def charges(self, card: Card) -> Iterator[Charge]:
        """Yield what the kernel charges to its containers."""
        return (charge for charge in card.charges or () if self.owns(charge.container))

    def _own_tenants(self, tenants: Iterable[Tenant]) -> dict[_Key, Tenant]:
        return {(tenant.mig, tenant.container): tenant for tenant in tenants if self.owns(tenant.container)}

    def _unbooked(self, card: Card) -> dict[_Key, list[Process]]:
        """Collect its processes that are booked to no container, such as an MPS server."""
        found: dict[_Key, list[Process]] = {}
        for process in (process for rest in card.rest for process in rest.processes):
            if process.holder is not None and self._holds(process.holder):
                found.setdefault((process.mig, process.holder.container), []).append(process)
        return found

    def owns(self, ref: ContainerRef | Allocation) -> bool:
        if self._title:
            return is_outsider(ref) and ref.container == self._title
        return not is_outsider(ref) and (ref.namespace, ref.pod) == self._name

    def _holds(self, holder: Holder) -> bool:
        if holder.container is not None:
            return self.owns(holder.container)
        if self._title:
            return holder.title == self._title
        return holder.owner is not None and holder.owner.pod_uid in self._cgroup_uids


def evidence(snapshot: Snapshot, name: str) -> Object | None:
    """Return what the node's snapshot knows of `NAMESPACE/POD`, or of a title outside Kubernetes; None if nothing."""
    namespace, _, pod = name.rpartition("/")
    found = PodEvidence(snapshot, namespace, pod)
    found = found if namespace and found else PodEvidence(snapshot, "", "", name)
    if not found:
        return None
    return {
        "node": snapshot.node,
        "taken_at": snapshot.taken_at,
        **({"stored": True} if snapshot.stored else {}),
        "pods": [plain(pod) | {"annotations": {}} for pod in found.pods.values()],
        "cards": [
            plain({"gpu": card.gpu, "fault": card.fault, "balance": card.balance, "xids": card.xids})
            | {"containers": [_document(container) for container in containers]}
            | ({"charges": [plain(charge) for charge in found.charges(card)]} if card.charges is not None else {})
            for card, containers in found.cards
        ],
        "unclaimed": [plain(allocation) for allocation in found.unclaimed],
        **({"unplaced": [plain(held) for held in found.unplaced]} if found.unplaced else {}),
    }


def _document(evidence: ContainerEvidence) -> Object:
    return {
        "mig": evidence.mig,
        "has_ended": evidence.has_ended,
        **plain({"container": evidence.container, "tenant": evidence.tenant}),
        "processes": [plain(process) for process in evidence.processes],
    }


def pod_names(snapshot: Snapshot) -> list[str]:
    """List every pod that is named anywhere, as `namespace/pod`."""
    refs: list[ContainerRef | Allocation] = [*snapshot.unclaimed, *named_containers(snapshot)]
    names = {(pod.namespace, pod.name) for pod in snapshot.pods}
    names |= {(ref.namespace, ref.pod) for ref in refs if not is_outsider(ref)}
    return sorted(f"{namespace}/{pod}" for namespace, pod in names)


def workload_names(snapshot: Snapshot) -> dict[str, str]:
    """Return `KIND/NAME` of the workload of each pod where it is known, by `namespace/pod`."""
    tenants = [tenant for card in snapshot.cards for tenant in card.tenants]
    found = {
        (tenant.container.namespace, tenant.container.pod): tenant.workload
        for tenant in tenants
        if not is_outsider(tenant.container)
    }
    found |= {(pod.namespace, pod.name): pod.workload for pod in snapshot.pods if pod.workload}
    return {
        f"{namespace}/{pod}": f"{workload.kind}/{workload.name}"
        for (namespace, pod), workload in found.items()
        if workload
    }


def _order(key: _Key) -> tuple[str, bool, str, str]:
    mig, container = key
    return (mig, True, "", "") if container is None else (mig, False, container.container, container.pod_uid)
