"""HAMi's monitor of a node: its names since 2.9, or those before, or both.

The library in a container counts the memory that it holds the container to, and that count is shown, as it is there.
Where it tells none it is the driver's. Limits and utilization are the library's only where nobody else tells them: a
tenant can write what he likes into its file.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import add
from typing import NamedTuple

from msgspec import Struct

from podgpu import option
from podgpu.catalog.row import Kind, Worth
from podgpu.model import Snapshot, VirtualGpu
from podgpu.option.value import OneOf
from podgpu.views.dialects import Document, Families
from podgpu.views.dialects._holding import Holding, holdings, percent, reading
from podgpu.views.family import Family, labels_text

SYSTEM = "hami"
MAKE = "NVIDIA"
ZONE = {"zone": "vGPU"}
# What the labels were called before 2.9. Others there were none.
LEGACY_LABELS = {
    "container": "ctrname",
    "device_index": "deviceidx",
    "device_type": "devicetype",
    "device_uuid": "deviceuuid",
    "gpu_instance_id": "instanceid",
    "namespace": "podnamespace",
    "node": "nodeid",
    "pod": "podname",
    "vdevice_index": "vdeviceid",
}

Pairs = Mapping[str, str]


class Naming(NamedTuple):
    """One family's names. `joined` makes one value of those of two pods of one name."""

    name: str
    help: str
    legacy: str = ""
    legacy_help: str = ""
    joined: Callable[[float, float], float] = add


class Sample(NamedTuple):
    naming: Naming
    pairs: Pairs
    value: float | None


class Part(Struct, frozen=True, kw_only=True):
    """A container's part of a card. `vgpu` is what its own library says of it."""

    holding: Holding
    index: int
    vgpu: VirtualGpu | None = None

    @property
    def pairs(self) -> Pairs:
        container = self.holding.container
        return {
            "container": container.container,
            "device_uuid": self.holding.device.gpu.uuid,
            "namespace": container.namespace,
            "pod": container.pod,
            "vdevice_index": str(self.index),
        }

    @property
    def used(self) -> float | None:
        told = self.vgpu.memory_used_bytes if self.vgpu else None
        return self.holding.memory_bytes if told is None else told

    @property
    def limit(self) -> float | None:
        granted = [claim.memory_limit_bytes for claim in self.holding.claims if claim.memory_limit_bytes]
        told = self.vgpu.memory_limit_bytes if self.vgpu else None
        return sum(granted) if granted else told

    @property
    def sm_percent(self) -> float | None:
        measured = self.holding.sm_ratio
        told = self.vgpu.sm_ratio if self.vgpu else None
        return percent(told if measured is None else measured)


HOST_USED = Naming(
    "hami_host_gpu_memory_used_bytes",
    "GPU device memory usage in bytes",
    "HostGPUMemoryUsage",
    "GPU device memory usage",
)
HOST_UTILIZATION = Naming(
    "hami_host_gpu_utilization_ratio",
    "GPU core utilization ratio (0-100)",
    "HostCoreUtilization",
    "GPU core utilization",
)
HOST_CONTROLLER = Naming(
    "hami_host_gpu_memory_controller_utilization_ratio", "GPU memory controller utilization ratio (0-100)"
)
HOST_TEMPERATURE = Naming("hami_host_gpu_temperature_celsius", "GPU temperature in degrees Celsius")
HOST_POWER = Naming("hami_host_gpu_power_usage_watts", "GPU power draw in watts")
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
DEVICE_MEMORY = Naming(
    "hami_container_device_memory_bytes",
    "Container device memory usage in bytes",
    "Device_memory_desc_of_container",
    "Container device memory description",
)
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
class Options:
    names: str = option.one(
        option.Option(
            flag="--dialect.hami.names",
            group=option.DIALECTS,
            help="Names on /metrics/hami: those since HAMi 2.9, those before, or both.",
            parse=OneOf(("new", "legacy", "both")),
            default="new",
        )
    )


def families(snapshot: Snapshot, options: Options) -> list[Family]:
    samples = [*_hosts(snapshot), *_containers(snapshot)]
    names = options.names
    chosen = samples if names in ("new", "both") else []
    if names in ("legacy", "both"):
        chosen = [*chosen, *(_in_old_words(one) for one in samples if one.naming.legacy)]
    page: dict[str, Family] = {}
    for naming, pairs, value in chosen:
        if value is not None:
            family = page.setdefault(naming.name, _family(naming))
            labels = _labels(pairs)
            before = family.samples.get(labels)
            family.samples[labels] = value if before is None else naming.joined(before, value)
    return list(page.values())


def _family(naming: Naming) -> Family:
    return Family(naming.name, Kind.GAUGE, naming.help, Worth.CORE)


def _labels(pairs: Pairs) -> str:
    texts = {**pairs, **ZONE}
    names = sorted(texts)
    return labels_text(names, [texts[name] for name in names])


def _in_old_words(one: Sample) -> Sample:
    naming = Naming(one.naming.legacy, one.naming.legacy_help, joined=one.naming.joined)
    pairs = {LEGACY_LABELS[key]: text for key, text in one.pairs.items() if key in LEGACY_LABELS}
    return Sample(naming, pairs, one.value)


def _hosts(snapshot: Snapshot) -> Iterator[Sample]:
    for device in {one.gpu.uuid: one for one in snapshot.devices}.values():
        gpu, said = device.gpu, device.readings
        pairs = {
            "device_index": str(gpu.index),
            "device_uuid": gpu.uuid,
            "device_type": gpu.model if gpu.model.startswith(MAKE) else f"{MAKE}-{gpu.model}",
            "node": snapshot.node_of(gpu),
        }
        yield Sample(HOST_USED, pairs, reading(said, "memory_used_bytes"))
        yield Sample(HOST_UTILIZATION, pairs, percent(reading(said, "utilization_ratio")))
        yield Sample(HOST_CONTROLLER, pairs, percent(reading(said, "memory_utilization_ratio")))
        yield Sample(HOST_TEMPERATURE, pairs, reading(said, "temperature_celsius", ("gpu",)))
        yield Sample(HOST_POWER, pairs, reading(said, "power_watts"))


def _containers(snapshot: Snapshot) -> Iterator[Sample]:
    for part in _parts(snapshot):
        pairs, vgpu = part.pairs, part.vgpu
        yield Sample(USED, pairs, part.used)
        yield Sample(LIMIT, pairs, part.limit)
        yield Sample(DEVICE_MEMORY, pairs, part.used)
        yield Sample(UTILIZATION, pairs, part.sm_percent)
        if vgpu:
            yield Sample(CONTEXT, pairs, vgpu.context_bytes)
            yield Sample(MODULE, pairs, vgpu.module_bytes)
            yield Sample(BUFFER, pairs, vgpu.buffer_bytes)
        if vgpu and vgpu.last_kernel_at is not None:
            yield Sample(LAST_KERNEL, pairs, max(0.0, snapshot.taken_at - vgpu.last_kernel_at))
        if instance := part.holding.instance:
            mig = {
                "compute_instance_id": str(instance.mig.compute_instance_id),
                "gpu_instance_id": str(instance.mig.gpu_instance_id),
                "mig_uuid": instance.mig.uuid,
                "profile": instance.mig.profile,
            }
            yield Sample(MIG, {**pairs, **mig}, 1.0)


def _parts(snapshot: Snapshot) -> Iterator[Part]:
    """List what HAMi gave, and cards whose holder has its library.

    A tenant can write any card into the library's file: it counts for cards that the container holds or uses.
    """
    vgpus = {(one.pod_uid, one.container, one.gpu): one for one in snapshot.vgpus}
    places = [(one.container, one.gpu, one.mig) for one in snapshot.claims if one.system == SYSTEM]
    for one in holdings(snapshot):
        ref, card = one.container, one.device.gpu.uuid
        vgpu = None if one.mig or not ref.pod_uid else vgpus.get((ref.pod_uid, ref.container, card))
        own = list(dict.fromkeys(place[1:] for place in places if place[0] == ref))
        if vgpu:
            yield Part(holding=one, index=vgpu.index, vgpu=vgpu)
        elif (card, one.mig) in own:
            yield Part(holding=one, index=own.index((card, one.mig)))


PAGES: Mapping[str, Families] = {"/metrics/hami": families}
DOCUMENTS: Mapping[str, Document] = {}
