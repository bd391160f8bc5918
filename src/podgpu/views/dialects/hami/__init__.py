"""HAMi's monitor of a node, and what its scheduler says of it: with names since 2.9, those before, or both.

As in HAMi, memory in use is what the library inside the container counts, since that is what it enforces; without the
library it is what the driver reports. A tenant can write anything into the library's file, so limits and utilization
come from it only if there is no other source.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msgspec import Struct

from podgpu import option
from podgpu.catalog.row import Kind, Worth
from podgpu.model import Gpu, Snapshot, Tenant, VirtualGpu
from podgpu.option.value import OneOf
from podgpu.views.dialects import Dialect
from podgpu.views.dialects._pod_tenant import PodTenant, percent, pod_tenants, reading
from podgpu.views.dialects.hami.naming import Naming, Pairs, Samples, with_new_names, with_old_names
from podgpu.views.dialects.hami.scheduler import SYSTEM, of_scheduler
from podgpu.views.sample_format import go
from podgpu.views.series import Family, Labels

MAKE = "NVIDIA"
ZONE = {"zone": "vGPU"}


class CardPart(Struct, frozen=True):
    """A container's part of a card. `index` is its number among the container's parts."""

    on: PodTenant
    index: int

    @property
    def vgpu(self) -> VirtualGpu | None:
        return self.on.tenant.vgpu

    @property
    def pairs(self) -> Pairs:
        container = self.on.container
        return {
            "container": container.container,
            "device_uuid": self.on.gpu.uuid,
            "namespace": container.namespace,
            "pod": container.pod,
            "vdevice_index": str(self.index),
        }

    @property
    def used(self) -> float | None:
        counted = self.vgpu.memory_used_bytes if self.vgpu else None
        return self.on.memory_bytes if counted is None else counted

    @property
    def limit(self) -> float | None:
        granted = [claim.memory_limit_bytes for claim in self.on.claims if claim.memory_limit_bytes]
        written = self.vgpu.memory_limit_bytes if self.vgpu else None
        return sum(granted) if granted else written

    @property
    def sm_percent(self) -> float | None:
        measured = self.on.sm_ratio
        written = self.vgpu.sm_ratio if self.vgpu else None
        return percent(written if measured is None else measured)


HOST_USED = Naming(
    "hami_host_gpu_memory_used_bytes",
    "GPU device memory usage in bytes",
    "HostGPUMemoryUsage",
    "GPU device memory usage",
    group="memory",
)
HOST_UTILIZATION = Naming(
    "hami_host_gpu_utilization_ratio",
    "GPU core utilization ratio (0-100)",
    "HostCoreUtilization",
    "GPU core utilization",
    group="use",
)
HOST_CONTROLLER = Naming(
    "hami_host_gpu_memory_controller_utilization_ratio",
    "GPU memory controller utilization ratio (0-100)",
    group="use",
)
HOST_TEMPERATURE = Naming(
    "hami_host_gpu_temperature_celsius", "GPU temperature in degrees Celsius", group="temperature"
)
HOST_POWER = Naming("hami_host_gpu_power_usage_watts", "GPU power draw in watts", group="power")
USED = Naming(
    "hami_vgpu_memory_used_bytes",
    "vGPU device memory usage in bytes",
    "vGPU_device_memory_usage_in_bytes",
    "vGPU device usage",
)
LIMIT = Naming(
    "hami_vgpu_memory_limit_bytes",
    "vGPU device memory limit in bytes",
    "vGPU_device_memory_limit_in_bytes",
    "vGPU device limit",
)
DEVICE_MEMORY = Naming("hami_container_device_memory_bytes", "Container device memory usage in bytes")
OLD_DEVICE_MEMORY = Naming("", "", "Device_memory_desc_of_container", "Container device memory description")
UTILIZATION = Naming(
    "hami_container_device_utilization_ratio",
    "Container device SM utilization ratio",
    "Device_utilization_desc_of_container",
    "Container device utilization description",
)
CONTEXT = Naming("hami_vgpu_memory_context_bytes", "Container device memory context size in bytes")
MODULE = Naming("hami_vgpu_memory_module_bytes", "Container device memory module size in bytes")
BUFFER = Naming("hami_vgpu_memory_buffer_bytes", "Container device memory buffer size in bytes")
LAST_KERNEL = Naming(
    "hami_container_last_kernel_elapsed_seconds",
    "Seconds since last kernel execution in container",
    "Device_last_kernel_of_container",
    "Container device last kernel description",
    joined=min,
)
MIG = Naming(
    "hami_mig_device_info",
    "MIG runtime identity for a container allocation",
    "MigInfo",
    "Mig device information for container",
    joined=max,
)


@dataclass(frozen=True, kw_only=True)
class HamiOptions:
    names: str = option.single(
        "--dialect.hami.names",
        group=option.DIALECTS,
        help="Names on /metrics/hami: those since HAMi 2.9, those before, or both.",
        parse=OneOf(("new", "legacy", "both")),
        default="new",
    )


def families(snapshot: Snapshot, options: HamiOptions) -> list[Family]:
    cards = {card.gpu.uuid: _card_pairs(snapshot, card.gpu) for card in snapshot.cards}
    samples = [*_hosts(snapshot, cards), *_containers(snapshot), *of_scheduler(snapshot, cards)]
    names = options.names
    chosen = list(map(with_new_names, samples)) if names in ("new", "both") else []
    if names in ("legacy", "both"):
        chosen += [old for one in samples for old in with_old_names(one)]
    page: dict[str, Family] = {}
    for pairs, values in chosen:
        labels = Labels.by_name({**pairs, **ZONE})
        for naming, value in values.items():
            if value is not None:
                _put(
                    page.get(naming.name) or page.setdefault(naming.name, _family(naming)),
                    naming,
                    value,
                    labels,
                )
    return list(page.values())


def _family(naming: Naming) -> Family:
    return Family(naming.name, Kind.GAUGE, naming.help, Worth.CORE, group=naming.group, writing=go)


def _put(family: Family, naming: Naming, value: float, labels: Labels) -> None:
    before = family.samples.get((labels,))
    family.put(value if before is None else naming.joined(before, value), labels)


def _card_pairs(snapshot: Snapshot, gpu: Gpu) -> dict[str, str]:
    return {
        "device_index": str(gpu.index),
        "device_uuid": gpu.uuid,
        "device_type": gpu.model if gpu.model.startswith(MAKE) else f"{MAKE}-{gpu.model}",
        "node": snapshot.node,
    }


def _hosts(snapshot: Snapshot, cards: Mapping[str, Pairs]) -> Iterator[Samples]:
    for card in snapshot.cards:
        readings = card.readings
        values = {
            HOST_USED: reading(readings, "memory_used_bytes"),
            HOST_UTILIZATION: percent(reading(readings, "utilization_ratio")),
            HOST_CONTROLLER: percent(reading(readings, "memory_utilization_ratio")),
            HOST_TEMPERATURE: reading(readings, "temperature_celsius", ("gpu",)),
            HOST_POWER: reading(readings, "power_watts"),
        }
        yield Samples(cards[card.gpu.uuid], values)


def _containers(snapshot: Snapshot) -> Iterator[Samples]:
    for part in _parts(snapshot):
        pairs = part.pairs
        values = {
            USED: part.used,
            LIMIT: part.limit,
            DEVICE_MEMORY: part.used,
            UTILIZATION: part.sm_percent,
        }
        yield Samples(pairs, values | _of_library(part.vgpu, snapshot.taken_at))
        yield Samples({**pairs, **_kinds_of_memory(part.vgpu)}, {OLD_DEVICE_MEMORY: part.used})
        if instance := part.on.instance:
            mig = {
                "compute_instance_id": str(instance.mig.compute_instance_id),
                "gpu_instance_id": str(instance.mig.gpu_instance_id),
                "mig_uuid": instance.mig.uuid,
                "profile": instance.mig.profile,
            }
            yield Samples({**pairs, **mig}, {MIG: 1.0})


def _of_library(vgpu: VirtualGpu | None, now: float) -> dict[Naming, float | None]:
    """What only the library inside the container knows."""
    if vgpu is None:
        return {}
    last = vgpu.last_kernel_at
    return {
        CONTEXT: vgpu.context_bytes,
        MODULE: vgpu.module_bytes,
        BUFFER: vgpu.buffer_bytes,
        LAST_KERNEL: None if last is None else max(0.0, now - last),
    }


def _kinds_of_memory(vgpu: VirtualGpu | None) -> Pairs:
    """What the library counted, as labels: so it was before 2.9. `offset` is the rest."""
    if vgpu is None:
        return {}
    context, module, data = vgpu.context_bytes, vgpu.module_bytes, vgpu.buffer_bytes
    if vgpu.memory_used_bytes is None or context is None or module is None or data is None:
        return {}
    rest = vgpu.memory_used_bytes - context - module - data
    return {"context": str(context), "module": str(module), "data": str(data), "offset": str(rest)}


def _parts(snapshot: Snapshot) -> Iterator[CardPart]:
    """The parts that HAMi gave, and the cards of containers that have its library inside."""
    for one in pod_tenants(snapshot):
        index = _index(one.tenant)
        if index is not None:
            yield CardPart(one, index)


def _index(tenant: Tenant) -> int | None:
    """As the library counts, or else in the order that the scheduler noted."""
    if tenant.vgpu:
        return tenant.vgpu.index
    noted = (claim.index for claim in tenant.claims if claim.system == SYSTEM)
    return next((index for index in noted if index is not None), None)


DIALECT = Dialect(pages={"/metrics/hami": families}, options=HamiOptions)
