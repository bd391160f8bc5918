"""The page of dcgm-exporter since 2.0: a row for each card, or for each GPU instance of a card.

A device that several containers share can have a row for each of them instead. Labels are in dcgm-exporter's order:
device, node, facts, the pod's own, then the others by name.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, pairwise

from podgpu.catalog.row import Unit
from podgpu.catalog.xids import UNKNOWN, XIDS
from podgpu.model import Claim, ContainerRef, Pod, PodContainer, Snapshot
from podgpu.model.kube import only
from podgpu.views.dialects._dcgm import derived
from podgpu.views.dialects._dcgm.counters import DECIMALS, Counter, DcgmPageOptions, Fact, Generation, select
from podgpu.views.dialects._dcgm.entity import DYNAMIC, LAST_XID, Entity, Occupant, entities, rounded, with_xid
from podgpu.views.series import Family, Key, Labels, label_name

UNKNOWN_XID = "Unknown Error"


@dataclass(frozen=True, slots=True)
class RowLabels:
    """What a row has besides its device: `own` are the labels that the pod was given by its users."""

    known: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)

    def key(self, device: Labels) -> Key:
        """A label that a pod's users chose gives way to one of dcgm-exporter's with the same name."""
        taken = {*device.names, *self.known}
        own = {name: value for name, value in self.own.items() if name not in taken}
        return device, *(Labels.by_name(pairs) for pairs in (own, self.known) if pairs)


@dataclass(frozen=True, slots=True)
class EntityRow:
    """An entity with its labels. `shares` are the containers on it, if each is to have a row of its own."""

    entity: Entity
    device: Labels
    holder: RowLabels
    key: Key
    shares: tuple[tuple[RowLabels, Occupant], ...] = ()


def families(
    snapshot: Snapshot, options: DcgmPageOptions, generation: Generation, *, full: bool = False
) -> list[Family]:
    selected = select(generation, options.collectors, full=full)
    cards = map(with_xid, snapshot.cards)
    pods = PodLabels(
        {pod.uid: pod for pod in snapshot.pods}, uid=options.pod_uid == "on", own=options.pod_labels == "on"
    )
    rows = []
    for entity in entities(derived.completed(snapshot, cards) if selected.is_derived else cards):
        device = _device_labels(snapshot, entity, selected.facts, generation.hostname)
        rows.append(_row(entity, pods, device, split=options.per_container == "on"))
    page = ((counter, dict(chain(*(_samples(counter, row) for row in rows)))) for counter in selected.counters)
    return [counter.family(samples, generation.fractions) for counter, samples in page if samples]


def _row(entity: Entity, pods: "PodLabels", device: Labels, *, split: bool) -> EntityRow:
    present, claims = entity.occupants, entity.only_pod
    holder = pods.of_holder(claims, entity) if claims else RowLabels()
    is_split = len(present) > 1 and (split or entity.is_dynamic)
    shares = [(pods.of_occupant(occupant, entity), occupant) for occupant in present if is_split]
    return EntityRow(entity, device, holder, holder.key(device), tuple(shares))


def _samples(counter: Counter, row: EntityRow) -> Iterator[tuple[Key, float]]:
    parts = _parts(counter, row)
    names = counter.rows[0].own_labels
    for values, value in row.entity.values(counter).items():
        if parts:
            fitted = _within(value, list(parts.values()), counter.unit)
            yield from zip(parts, fitted, strict=True)
            yield (row.device,), max(0.0, round(value - sum(fitted), DECIMALS))
            continue
        own = {name: text for name, text in zip(names, values, strict=True) if text}
        if counter.rows[0].name == LAST_XID:
            own |= {"err_code": str(int(value)), "err_msg": XIDS.get(int(value), UNKNOWN).meaning or UNKNOWN_XID}
        for labels in _repeated(counter, row):
            if own:
                yield replace(labels, known={**labels.known, **own}).key(row.device), value
            else:
                yield row.key if labels is row.holder else labels.key(row.device), value


def _repeated(counter: Counter, row: EntityRow) -> Iterable[RowLabels]:
    """Return the labels of the rows that have the whole value, because it cannot be divided.

    A value that is usually divided is not repeated for each container while nothing is measured.
    """
    is_unknown = row.entity.is_booked(counter) and row.entity.card.ability.sees_processes
    return [labels for labels, _ in row.shares if not is_unknown] or [row.holder]


def _within(value: float, parts: list[float], unit: Unit) -> list[float]:
    """Cut parts that add up to more than the value, all by the same ratio, so that they add up to it.

    Each is measured by itself, and the work of two containers may overlap in time.
    """
    value = max(0.0, value)
    if sum(parts) <= value:
        return parts
    weights = [part / max(parts) for part in parts]
    edges = [rounded(value * (upto / sum(weights)), unit) for upto in accumulate(weights)]
    return [round(end - start, DECIMALS) for start, end in pairwise([0.0, *edges])]


def _parts(counter: Counter, row: EntityRow) -> Mapping[Key, float]:
    """How much of the value each container has. Empty if that is unknown, or if such values are not divided."""
    if not row.entity.is_booked(counter):
        return {}
    used = [(labels, occupant.used(counter)) for labels, occupant in row.shares]
    return {labels.key(row.device): part for labels, part in used if part is not None}


def _device_labels(snapshot: Snapshot, entity: Entity, facts: Iterable[tuple[str, Fact]], hostname: str) -> Labels:
    gpu = entity.card.gpu
    pairs = {
        "gpu": str(gpu.index),
        "UUID": gpu.uuid,
        "pci_bus_id": gpu.pci_bus_id,
        "device": f"nvidia{gpu.index}",  # DCGM's own number, not that of /dev/nvidiaN
        "modelName": gpu.model,
    }
    if entity.instances:
        pairs["GPU_I_PROFILE"] = entity.profile
        pairs["GPU_I_ID"] = entity.instance_id
    pairs[hostname] = snapshot.node
    return Labels.of(pairs | {name: value for name, fact in facts if (value := fact.value(snapshot, gpu))})


@dataclass(frozen=True, slots=True)
class PodLabels:
    """Makes the labels of rows. `pods` are by UID; `uid` and `own` ask for the pod's UID and its own labels too."""

    pods: Mapping[str, Pod]
    uid: bool = False
    own: bool = False

    def of_occupant(self, occupant: Occupant, entity: Entity) -> RowLabels:
        claim, container = occupant.claim, occupant.container
        return self._with_pod(container, self._of_claim(claim, entity) if claim else _of_container(container))

    def of_holder(self, claims: Sequence[Claim], entity: Entity) -> RowLabels:
        """Name the pod that has all these claims. If several of its containers do, the container is empty."""
        first, *others = (self._of_claim(claim, entity) for claim in claims)
        same = {name: value for name, value in first.items() if all(labels.get(name) == value for labels in others)}
        return self._with_pod(claims[0].container, {"container": "", **same})

    def _with_pod(self, container: ContainerRef, known: Mapping[str, str]) -> RowLabels:
        pod = self.pods.get(container.pod_uid)
        uid = {"pod_uid": container.pod_uid} if self.uid and container.pod_uid else {}
        return RowLabels({**known, **uid}, _sanitised(pod.labels) if pod and self.own else {})

    def _of_claim(self, claim: Claim, entity: Entity) -> dict[str, str]:
        """Name the container, and its resource claim if it was given the device by one."""
        labels = _of_container(claim.container)
        if claim.system != DYNAMIC:
            return labels
        pool, _, device = claim.device_id.rpartition("/")
        labels |= {"dra_driver_name": claim.resource, "dra_pool_name": pool, "dra_device_name": device}
        if name := _resource_claim(claim, self.pods.get(claim.container.pod_uid)):
            labels |= {"dra_claim_name": name, "dra_claim_namespace": claim.container.namespace}
        if claim.mig:
            labels |= {"dra_mig_device_uuid": claim.mig, "dra_mig_profile": entity.profile}
        return labels


def _of_container(container: ContainerRef) -> dict[str, str]:
    return {"container": container.container, "namespace": container.namespace, "pod": container.pod}


def _sanitised(labels: Mapping[str, str]) -> dict[str, str]:
    """`app.kubernetes.io/name` becomes `app_kubernetes_io_name`. Of two that become the same, the first counts."""
    found: dict[str, str] = {}
    for name in sorted(labels):
        plain = label_name(name)
        found.setdefault(f"_{plain}" if plain[:1].isdigit() else plain, labels[name])
    return found


def _resource_claim(claim: Claim, pod: Pod | None) -> str:
    """Name the ResourceClaim. Empty if there is any doubt which one it is."""
    for container in pod.containers if pod else ():
        if pod and container.name == claim.container.container:
            return only(_in_status(claim, pod, container) or _used(pod, container))
    return ""


def _in_status(claim: Claim, pod: Pod, container: PodContainer) -> set[str]:
    """The claims that the pod's status names for this very device."""
    place = f"{claim.resource}/{claim.device_id}"
    own_names = {
        resource.removeprefix("claim:").partition("/")[0]
        for resource, device_id in container.devices
        if device_id == place and resource.startswith("claim:")
    }
    return {name for own in own_names if (name := pod.resource_claims.get(own))}


def _used(pod: Pod, container: PodContainer) -> set[str]:
    used = {pod.resource_claims.get(use.claim, "") for use in container.uses}
    if any(extended.container == container.name for extended in pod.extended):
        used.add(pod.extended_claim)
    return used
