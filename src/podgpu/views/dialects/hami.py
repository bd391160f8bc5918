"""HAMi's monitor of a node, and what its scheduler says of it: with names since 2.9, those before, or both.

As in HAMi, memory in use is what the library inside the container counts, since that is what it enforces; without the
library it is what the driver reports. A tenant can write anything into the library's file, so limits and utilization
come from it only if there is no other source.

The scheduler reads its own annotations; the claims of the cards say the same. Quotas of namespaces, and what the
scheduler may allocate beyond a card's real memory, are not known on the node.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from podgpu import option
from podgpu.catalog.agent_parts import PODRESOURCES
from podgpu.catalog.row import MIB, Kind, Worth
from podgpu.insight.tenants import reading
from podgpu.model import Card, Claim, Gpu, MigInstance, Snapshot, Tenant, VirtualGpu
from podgpu.model.kube import grouped, total
from podgpu.option.value import OneOf
from podgpu.views.dialects import Dialect
from podgpu.views.dialects import _hami_names as names
from podgpu.views.dialects._hami_names import HamiFamily, HamiSamples, Pairs
from podgpu.views.dialects._pod_tenant import PodTenant, percent, pod_tenants
from podgpu.views.format import number_text
from podgpu.views.sample_format import go
from podgpu.views.series import Family, Labels

SYSTEM = "hami"
MAKE = "NVIDIA"
ZONE = {"zone": "vGPU"}
CORES = 100  # of a whole card
_NO_LIBRARY = VirtualGpu(pod_uid="", container="", gpu="")


@dataclass(frozen=True, kw_only=True)
class HamiOptions:
    names: str = option.DIALECTS.single(
        "--dialect.hami.names",
        help="Names on /metrics/hami: those since HAMi 2.9, those before, or both.",
        parse=OneOf(("new", "legacy", "both")),
        default="new",
    )


def families(snapshot: Snapshot, options: HamiOptions) -> list[Family]:
    samples = [*_hosts(snapshot), *_containers(snapshot), *_scheduler(snapshot)]
    chosen = samples if options.names != "legacy" else []
    if options.names != "new":
        chosen = [*chosen, *(each.with_old_names() for each in samples)]
    page: dict[str, Family] = {}
    for pairs, values in chosen:
        labels = Labels.by_name({**pairs, **ZONE})
        for family, value in values.items():
            if family.name and value is not None:
                shown = page.get(family.name) or page.setdefault(family.name, _family(family))
                before = shown.samples.get((labels,))
                shown.put(value if before is None else family.joined(before, value), labels)
    return list(page.values())


def _family(family: HamiFamily) -> Family:
    return Family(family.name, Kind.GAUGE, family.help, Worth.CORE, group=family.group, writing=go)


def _card_pairs(snapshot: Snapshot, gpu: Gpu) -> dict[str, str]:
    return {
        "device_index": str(gpu.index),
        "device_uuid": gpu.uuid,
        "device_type": gpu.model if gpu.model.startswith(MAKE) else f"{MAKE}-{gpu.model}",
        "node": snapshot.node,
    }


def _mig_pairs(mig: MigInstance) -> dict[str, str]:
    return {
        "compute_instance_id": number_text(mig.compute_instance_id),
        "gpu_instance_id": number_text(mig.gpu_instance_id),
        "mig_uuid": mig.uuid,
        "profile": mig.profile,
    }


def _hosts(snapshot: Snapshot) -> Iterator[HamiSamples]:
    for card in snapshot.cards:
        readings = card.readings
        of_chip = [each for each in readings if each.labels == ("gpu",)]
        values = {
            names.HOST_USED: reading(readings, "memory_used_bytes"),
            names.HOST_UTILIZATION: percent(reading(readings, "utilization_ratio")),
            names.HOST_CONTROLLER: percent(reading(readings, "memory_utilization_ratio")),
            names.HOST_TEMPERATURE: reading(of_chip, "temperature_celsius"),
            names.HOST_POWER: reading(readings, "power_watts"),
        }
        yield HamiSamples(_card_pairs(snapshot, card.gpu), values)


def _containers(snapshot: Snapshot) -> Iterator[HamiSamples]:
    """The parts of cards that HAMi allocated, and the cards of containers that have its library inside."""
    for tenant in pod_tenants(snapshot):
        index, library = _index(tenant.tenant), tenant.tenant.vgpu or _NO_LIBRARY
        if index is None:
            continue
        pairs = {
            "container": tenant.container.container,
            "device_uuid": tenant.gpu.uuid,
            "namespace": tenant.container.namespace,
            "pod": tenant.container.pod,
            "vdevice_index": str(index),
        }
        used = tenant.memory_bytes if library.memory_used_bytes is None else library.memory_used_bytes
        granted = sum(claim.memory_limit_bytes or 0 for claim in tenant.claims)
        last = library.last_kernel_at
        values = {
            names.USED: used,
            names.LIMIT: granted or library.memory_limit_bytes,
            names.DEVICE_MEMORY: used,
            names.UTILIZATION: percent(library.sm_ratio if tenant.sm_ratio is None else tenant.sm_ratio),
            names.CONTEXT: library.context_bytes,
            names.MODULE: library.module_bytes,
            names.BUFFER: library.buffer_bytes,
            names.LAST_KERNEL: None if last is None else max(0.0, snapshot.taken_at - last),
        }
        yield HamiSamples(pairs, values)
        yield HamiSamples(pairs | _kinds_of_memory(library), {names.OLD_DEVICE_MEMORY: used})
        if tenant.instance:
            yield HamiSamples(pairs | _mig_pairs(tenant.instance.mig), {names.MIG: 1.0})


def _index(tenant: Tenant) -> int | None:
    """The number of the part among the container's: as the library counts, else by the scheduler's annotation."""
    if tenant.vgpu:
        return tenant.vgpu.index
    annotated = (claim.index for claim in tenant.claims if claim.system == SYSTEM)
    return next((index for index in annotated if index is not None), None)


def _kinds_of_memory(library: VirtualGpu) -> dict[str, str]:
    """What the library counted, as labels, which only names before 2.9 have. `offset` is the rest."""
    kinds = {"context": library.context_bytes, "module": library.module_bytes, "data": library.buffer_bytes}
    known = {kind: size for kind, size in kinds.items() if size is not None}
    if library.memory_used_bytes is None or known != kinds:
        return {}
    known["offset"] = library.memory_used_bytes - sum(known.values())
    return {kind: str(size) for kind, size in known.items()}


def _scheduler(snapshot: Snapshot) -> Iterator[HamiSamples]:
    """How much of each card the scheduler has allocated, and to which containers."""
    on_card = grouped(pod_tenants(snapshot), lambda tenant: tenant.gpu.uuid)
    is_known = any(part.name == PODRESOURCES.name and part.up for part in snapshot.parts)
    positions = _positions(snapshot)
    for card in snapshot.cards:
        tenants, pairs = on_card.get(card.gpu.uuid, []), _card_pairs(snapshot, card.gpu)
        yield from _of_card(card, tenants, pairs, is_known=is_known)
        for tenant in tenants:
            yield from _of_instance(tenant, pairs)
            position = positions.get((tenant.container.pod_uid, tenant.container.container))
            if position is not None:
                yield from _of_container(snapshot.node, tenant, position)


def _of_card(card: Card, tenants: list[PodTenant], pairs: Pairs, *, is_known: bool) -> Iterator[HamiSamples]:
    whole = reading(card.readings, "memory_total_bytes")
    yield HamiSamples(pairs, {names.CARD_MEMORY_LIMIT: whole, names.CARD_CORE_LIMIT: float(CORES)})
    held = [(tenant, claim) for tenant in tenants for claim in _given(tenant)]
    if not (held or is_known):
        return
    memory = total([0.0, *(tenant.memory_of(claim) for tenant, claim in held)])
    core = total([0.0, *(_core(tenant, claim) for tenant, claim in held)])
    ratio = memory / whole if memory is not None and whole is not None and whole >= 1 else None
    shared = float(len(held))
    cores = {**pairs, "device_cores": str(CORES)}
    limit = {"device_memory_limit": "" if whole is None else str(int(whole / MIB.factor))}
    used = {"device_cores": "" if core is None else f"{core:g}", "shared_containers": f"{shared:g}"}
    untyped = {key: text for key, text in pairs.items() if key != "device_type"}
    yield HamiSamples(pairs, {names.CARD_CORE: core, names.CARD_SHARED: shared, names.CARD_RATIO: ratio})
    yield HamiSamples(cores, {names.CARD_MEMORY: memory})
    yield HamiSamples(cores | limit, {names.OVERVIEW: memory})
    yield HamiSamples({**pairs, **used, **limit}, {names.OLD_OVERVIEW: memory})
    yield HamiSamples(untyped, {names.OLD_CARD_RATIO: ratio})


def _of_instance(tenant: PodTenant, card: Pairs) -> Iterator[HamiSamples]:
    """A MIG instance that HAMi allocated. How many slices it has is not known on the node."""
    if tenant.instance is None or not _given(tenant):
        return
    mig = tenant.instance.mig
    untyped = {key: text for key, text in card.items() if key != "device_type"}
    start = {} if mig.start is None else {"placement_start": str(mig.start)}
    yield HamiSamples(untyped | _mig_pairs(mig) | start, {names.CARD_MIG: 1.0})
    legacy = {"mig_name": f"{mig.profile}-{mig.gpu_instance_id}"}
    yield HamiSamples(untyped | legacy, {names.OLD_CARD_MIG: 1.0})


def _of_container(node: str, tenant: PodTenant, position: int) -> Iterator[HamiSamples]:
    given = _given(tenant)
    if not given:
        return
    memory = total(tenant.memory_of(claim) for claim in given)
    core = total(_core(tenant, claim) for claim in given)
    whole = reading(tenant.card.readings, "memory_total_bytes")
    pairs = {
        "container_index": str(position),
        "device_uuid": tenant.gpu.uuid,
        "namespace": tenant.container.namespace,
        "node": node,
        "pod": tenant.container.pod,
    }
    values = {
        names.POD_MEMORY: memory,
        names.POD_CORE: core,
        names.POD_RATIO: memory / whole if memory is not None and whole else None,
        names.POD_OLD_CORE: core,
    }
    yield HamiSamples(pairs, values)
    used = {"device_used_core": "" if core is None else f"{core:g}"}
    yield HamiSamples(pairs | used, {names.POD_DEVICE: memory})


def _given(tenant: PodTenant) -> list[Claim]:
    """The claims that HAMi's scheduler knows of: its own."""
    return [claim for claim in tenant.claims if claim.system == SYSTEM]


def _positions(snapshot: Snapshot) -> dict[tuple[str, str], int]:
    """Number the containers as their pods' specs list them. The spec of a pod without a phase is not known."""
    return {
        (pod.uid, container.name): position
        for pod in snapshot.pods
        if pod.phase
        for position, container in enumerate(pod.main_containers)
    }


def _core(tenant: PodTenant, claim: Claim) -> float | None:
    """In HAMi, a part of a card that has no limit of cores counts as 0 cores."""
    if claim.core_limit_ratio is not None:
        return claim.core_limit_ratio * CORES
    if claim.share < 1 and not tenant.mig:
        return 0.0
    share = tenant.share_of(claim)
    return None if share is None else share * CORES


DIALECT = Dialect(pages={"/metrics/hami": families}, options=HamiOptions)
