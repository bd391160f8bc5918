"""What is known of one owner, card by card."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from podgpu.model import Allocation, Card, Claim, ContainerRef, Holder, Process, Snapshot, Tenant
from podgpu.views.tenants import is_outsider

# The UUID of a MIG instance, or nothing, and a container, or None for a process whose container is not known.
_Key = tuple[str, ContainerRef | None]


class Chain(Struct, frozen=True, kw_only=True):
    """One container of the pod on one card or instance. Without a `tenant`, its processes are booked to nobody."""

    mig: str
    container: ContainerRef | None
    tenant: Tenant | None = None
    has_ended: bool = False
    processes: tuple[Process, ...] = ()

    @property
    def claims(self) -> tuple[Claim, ...]:
        return self.tenant.claims if self.tenant else ()


class Case:
    """Everything in a snapshot that concerns one pod, by its namespace and name.

    One outside Kubernetes has empty ones, and a title. `cards` are those that it holds or uses, with its chains.
    `numbers` are the indices of all cards, by UUID. `is_stored`: there is no evidence, since a store keeps none.
    """

    def __init__(self, snapshot: Snapshot, namespace: str, pod: str, title: str = "") -> None:
        self._name = (namespace, pod)
        self._title = title
        self.is_stored = snapshot.stored
        self.pods = {one.uid: one for one in snapshot.pods if (one.namespace, one.name) == self._name}
        self.unclaimed = [one for one in snapshot.unclaimed if self._owns(one)]
        refs = [one for card in snapshot.cards for one in _containers(card) if self._owns(one)]
        self.uids = sorted({*self.pods, *(ref.pod_uid for ref in refs)} - {""})
        # A static pod's cgroup carries a hash in place of the UID.
        self._cgroup_uids = {*self.uids, *(pod.static_hash for pod in self.pods.values())} - {""}
        self.numbers = {card.gpu.uuid: card.gpu.index for card in snapshot.cards}
        found = ((card, self._chains(card)) for card in snapshot.cards)
        self.cards = [(card, chains) for card, chains in found if chains]

    def __bool__(self) -> bool:
        return bool(self.pods or self.unclaimed or self.cards)

    @property
    def has_claims(self) -> bool:
        return any(chain.claims for _, chains in self.cards for chain in chains)

    def is_init(self, container: ContainerRef | None) -> bool:
        pod = self.pods.get(container.pod_uid) if container else None
        names = [one.name for one in pod.containers if one.is_init] if pod else []
        return container is not None and container.container in names

    def _chains(self, card: Card) -> list[Chain]:
        ended, live = self._own(card.ended), self._own(card.tenants)
        tenants = ended | live
        loose = self._loose(card)
        return [
            Chain(
                mig=key[0],
                container=key[1],
                tenant=(tenant := tenants.get(key)),
                has_ended=key in ended and key not in live,
                processes=((*tenant.processes, *loose.get(key, ())) if tenant else tuple(loose[key])),
            )
            for key in sorted({*tenants, *loose}, key=_order)
        ]

    def _own(self, tenants: Iterable[Tenant]) -> dict[_Key, Tenant]:
        return {(one.mig, one.container): one for one in tenants if self._owns(one.container)}

    def _loose(self, card: Card) -> dict[_Key, list[Process]]:
        """Collect its processes that are booked to no container, such as an MPS server."""
        found: dict[_Key, list[Process]] = {}
        for rest in card.rest:
            for process in rest.processes:
                if process.holder is not None and self._holds(process.holder):
                    found.setdefault((process.mig, process.holder.container), []).append(process)
        return found

    def _owns(self, one: ContainerRef | Allocation) -> bool:
        if self._title:
            return is_outsider(one) and one.container == self._title
        return not is_outsider(one) and (one.namespace, one.pod) == self._name

    def _holds(self, holder: Holder) -> bool:
        if holder.container is not None:
            return self._owns(holder.container)
        if self._title:
            return holder.title == self._title
        return holder.owner is not None and holder.owner.pod_uid in self._cgroup_uids


def pod_names(snapshot: Snapshot) -> list[str]:
    """List every pod that is named anywhere, as `namespace/pod`."""
    names = {(pod.namespace, pod.name) for pod in snapshot.pods}
    names |= {(one.namespace, one.pod) for one in snapshot.unclaimed if not is_outsider(one)}
    for card in snapshot.cards:
        names |= {(one.namespace, one.pod) for one in _containers(card) if not is_outsider(one)}
    return sorted(f"{namespace}/{pod}" for namespace, pod in names)


def workload_names(snapshot: Snapshot) -> dict[str, str]:
    """Return `KIND/NAME` of the workload of each pod where it is known, by `namespace/pod`."""
    tenants = [one for card in snapshot.cards for one in card.tenants if not is_outsider(one.container)]
    found = {(one.container.namespace, one.container.pod): one.workload for one in tenants}
    found |= {(one.namespace, one.name): one.workload for one in snapshot.pods if one.workload}
    return {
        f"{namespace}/{pod}": f"{workload.kind}/{workload.name}"
        for (namespace, pod), workload in found.items()
        if workload
    }


def _containers(card: Card) -> Iterator[ContainerRef]:
    """Every container that is named on the card, some more than once."""
    yield from (tenant.container for tenant in (*card.tenants, *card.ended))
    for rest in card.rest:
        yield from (one.holder.container for one in rest.processes if one.holder and one.holder.container)


def _order(key: _Key) -> tuple[str, bool, str, str]:
    mig, container = key
    return (mig, True, "", "") if container is None else (mig, False, container.container, container.pod_uid)
