"""What HAMi's scheduler says of a node: how much of each card it has given out, and to whom.

The scheduler reads this in its own notes; the claims of the cards say the same. Quotas of namespaces and what the
scheduler may give out beyond a card's real memory are not known on the node.
"""

from collections.abc import Iterable, Iterator, Mapping

from podgpu.catalog.agent_parts import PODRESOURCES
from podgpu.catalog.units import MIB
from podgpu.model import Card, Claim, Snapshot
from podgpu.views.dialects._pod_tenant import PodTenant, pod_tenants, reading
from podgpu.views.dialects.hami.naming import Naming, Pairs, Samples

SYSTEM = "hami"
CORES = 100  # of a whole card
CAPACITY = "capacity"

MEMORY_LIMIT = Naming(
    "hami_gpu_memory_limit_bytes",
    "Device memory limit for a certain GPU",
    "GPUDeviceMemoryLimit",
    group=CAPACITY,
)
CORE_LIMIT = Naming(
    "hami_gpu_core_limit_ratio",
    "Device core limit for a certain GPU",
    "GPUDeviceCoreLimit",
    "Device memory core limit for a certain GPU",
    group=CAPACITY,
)
MEMORY = Naming(
    "hami_gpu_memory_allocated_bytes",
    "Device memory allocated for a certain GPU",
    "GPUDeviceMemoryAllocated",
    group=CAPACITY,
)
CORE = Naming(
    "hami_gpu_core_allocated_ratio",
    "Device core allocated for a certain GPU",
    "GPUDeviceCoreAllocated",
    group=CAPACITY,
)
SHARED = Naming(
    "hami_gpu_shared_count", "Number of containers sharing this GPU", "GPUDeviceSharedNum", group=CAPACITY
)
OVERVIEW = Naming("hami_node_gpu_overview", "GPU overview on a certain node", group=CAPACITY)
OLD_OVERVIEW = Naming("", "", "nodeGPUOverview", "GPU overview on a certain node", group=CAPACITY)
RATIO = Naming(
    "hami_node_gpu_memory_allocated_ratio", "GPU Memory Allocated Percentage on a certain GPU", group=CAPACITY
)
OLD_RATIO = Naming(
    "", "", "nodeGPUMemoryPercentage", "GPU Memory Allocated Percentage on a certain GPU", group=CAPACITY
)
MIG = Naming(
    "hami_node_gpu_mig_instance_info",
    "Realized MIG instance identity and scheduler placement",
    group=CAPACITY,
    joined=max,
)
OLD_MIG = Naming(
    "",
    "",
    "nodeGPUMigInstance",
    "GPU Sharing mode. 0 for hami-core, 1 for mig, 2 for mps",
    group=CAPACITY,
    joined=max,
)
POD_MEMORY = Naming(
    "hami_vgpu_memory_allocated_bytes",
    "vGPU memory allocated from a container",
    "vGPUMemoryAllocated",
    node="nodename",
)
POD_CORE = Naming(
    "hami_vgpu_core_allocated_ratio",
    "vGPU core allocated from a container",
    "vGPUCoreAllocated",
    node="nodename",
)
POD_RATIO = Naming(
    "", "", "vGPUMemoryPercentage", "vGPU memory percentage allocated from a container", node="nodename"
)
POD_OLD_CORE = Naming("", "", "vGPUCorePercentage", "vGPU core allocated from a container", node="nodename")
POD_DEVICE = Naming("", "", "vGPUPodsDeviceAllocated", "vGPU Allocated from pods", node="nodename")


def of_scheduler(snapshot: Snapshot, names: Mapping[str, Pairs]) -> Iterator[Samples]:
    """`names` are the labels of the cards, by UUID."""
    on_card: dict[str, list[PodTenant]] = {}
    for one in pod_tenants(snapshot):
        on_card.setdefault(one.gpu.uuid, []).append(one)
    is_known = any(part.name == PODRESOURCES.name and part.up for part in snapshot.parts)
    places = _places(snapshot)
    for card in snapshot.cards:
        tenants = on_card.get(card.gpu.uuid, [])
        yield from _of_card(card, tenants, names[card.gpu.uuid], is_known=is_known)
        for one in tenants:
            yield from _of_instance(one, names[card.gpu.uuid])
            yield from _of_container(snapshot, one, places)


def _of_card(card: Card, tenants: list[PodTenant], pairs: Pairs, *, is_known: bool) -> Iterator[Samples]:
    whole = reading(card.readings, "memory_total_bytes")
    yield Samples(pairs, {MEMORY_LIMIT: whole, CORE_LIMIT: float(CORES)})
    held = [(one, claim) for one in tenants for claim in _given(one)]
    if not (held or is_known):
        return
    memory = _sum(_memory(one, claim) for one, claim in held)
    core = _sum(_core(one, claim) for one, claim in held)
    ratio = memory / whole if memory is not None and whole else None
    shared = float(len(held))
    cores = {**pairs, "device_cores": str(CORES)}
    limit = {"device_memory_limit": "" if whole is None else str(int(whole / MIB.factor))}
    used = {"device_cores": "" if core is None else f"{core:g}", "shared_containers": f"{shared:g}"}
    yield Samples(pairs, {CORE: core, SHARED: shared, RATIO: ratio})
    yield Samples(cores, {MEMORY: memory})
    yield Samples(cores | limit, {OVERVIEW: memory})
    yield Samples({**pairs, **used, **limit}, {OLD_OVERVIEW: memory})
    yield Samples({key: text for key, text in pairs.items() if key != "device_type"}, {OLD_RATIO: ratio})


def _of_instance(one: PodTenant, card: Pairs) -> Iterator[Samples]:
    """A MIG instance that HAMi gave. How many slices it is long is not known on the node."""
    if one.instance is None or not _given(one):
        return
    mig = one.instance.mig
    place = {key: text for key, text in card.items() if key != "device_type"}
    ids = {
        "compute_instance_id": str(mig.compute_instance_id),
        "gpu_instance_id": str(mig.gpu_instance_id),
        "mig_uuid": mig.uuid,
        "profile": mig.profile,
    }
    start = {} if mig.start is None else {"placement_start": str(mig.start)}
    yield Samples(place | ids | start, {MIG: 1.0})
    yield Samples(place | {"mig_name": f"{mig.profile}-{mig.gpu_instance_id}"}, {OLD_MIG: 1.0})


def _of_container(
    snapshot: Snapshot, one: PodTenant, places: Mapping[tuple[str, str], int]
) -> Iterator[Samples]:
    place = places.get((one.container.pod_uid, one.container.container))
    given = _given(one)
    if place is None or not given:
        return
    memory, core = (_sum(what(one, claim) for claim in given) for what in (_memory, _core))
    whole = reading(one.card.readings, "memory_total_bytes")
    pairs = {
        "container_index": str(place),
        "device_uuid": one.gpu.uuid,
        "namespace": one.container.namespace,
        "node": snapshot.node,
        "pod": one.container.pod,
    }
    ratio = memory / whole if memory is not None and whole else None
    yield Samples(pairs, {POD_MEMORY: memory, POD_CORE: core, POD_RATIO: ratio, POD_OLD_CORE: core})
    yield Samples(pairs | {"device_used_core": "" if core is None else f"{core:g}"}, {POD_DEVICE: memory})


def _given(one: PodTenant) -> list[Claim]:
    """What another system gave, HAMi's scheduler knows nothing of."""
    return [claim for claim in one.claims if claim.system == SYSTEM]


def _places(snapshot: Snapshot) -> dict[tuple[str, str], int]:
    """Number the containers as their pods' specs list them. A pod without a phase is not known by its spec."""
    return {
        (pod.uid, name): place
        for pod in snapshot.pods
        if pod.phase
        for place, name in enumerate(
            one.name for one in pod.containers if not (one.is_init or one.is_ephemeral)
        )
    }


def _memory(one: PodTenant, claim: Claim) -> float | None:
    """A claim without a limit is on its share of the device: on all of it, if it is whole."""
    if claim.memory_limit_bytes is not None:
        return float(claim.memory_limit_bytes)
    whole = one.reading("memory_total_bytes")
    return None if whole is None or not claim.share else whole * claim.share


def _core(one: PodTenant, claim: Claim) -> float | None:
    """In HAMi, a part of a card without a limit of its cores counts as none of them."""
    if claim.core_limit_ratio is not None:
        return claim.core_limit_ratio * CORES
    if claim.share < 1 and not one.mig:
        return 0.0
    part = one.part
    return None if part is None else part * claim.share * CORES


def _sum(values: Iterable[float | None]) -> float | None:
    """If one value is unknown, so is the sum."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    return float(sum(known)) if len(known) == len(listed) else None
