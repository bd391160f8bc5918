"""HAMi's names of families and labels: those since 2.9, and those before."""

from collections.abc import Callable, Mapping
from functools import partial
from operator import add
from typing import NamedTuple

Pairs = Mapping[str, str]

# The names of labels before 2.9. There were no others.
LEGACY_LABELS = {
    **{kind: kind for kind in ("context", "data", "module", "offset")},
    "container": "ctrname",
    "container_index": "containeridx",
    "device_cores": "devicecores",
    "device_index": "deviceidx",
    "device_memory_limit": "devicememorylimit",
    "device_type": "devicetype",
    "device_used_core": "deviceusedcore",
    "device_uuid": "deviceuuid",
    "gpu_instance_id": "instanceid",
    "mig_name": "migname",
    "namespace": "podnamespace",
    "node": "nodeid",
    "pod": "podname",
    "shared_containers": "sharedcontainers",
    "vdevice_index": "vdeviceid",
}


class HamiFamily(NamedTuple):
    """The names of one family. `joined` makes one value from those of two pods with the same name.

    A family without a `name` has only its legacy one, and the other way round. `group` is what clients can ask for
    together.
    """

    name: str
    help: str
    legacy: str = ""
    legacy_help: str = ""
    joined: Callable[[float, float], float] = add
    group: str = "containers"


class HamiSamples(NamedTuple):
    """Values that share their labels."""

    pairs: Pairs
    values: Mapping[HamiFamily, float | None]

    def with_old_names(self) -> "HamiSamples":
        # Series of containers that the scheduler numbers had another name for the node's label.
        labels = LEGACY_LABELS | ({"node": "nodename"} if "container_index" in self.pairs else {})
        return HamiSamples(
            {labels[key]: text for key, text in self.pairs.items() if key in labels},
            {
                family._replace(name=family.legacy, help=family.legacy_help or family.help): value
                for family, value in self.values.items()
            },
        )


# The node's cards.
HOST_USED = HamiFamily(
    "hami_host_gpu_memory_used_bytes",
    "GPU device memory usage in bytes",
    "HostGPUMemoryUsage",
    "GPU device memory usage",
    group="memory",
)
HOST_UTILIZATION = HamiFamily(
    "hami_host_gpu_utilization_ratio",
    "GPU core utilization ratio (0-100)",
    "HostCoreUtilization",
    "GPU core utilization",
    group="use",
)
HOST_CONTROLLER = HamiFamily(
    "hami_host_gpu_memory_controller_utilization_ratio", "GPU memory controller utilization ratio (0-100)", group="use"
)
HOST_TEMPERATURE = HamiFamily(
    "hami_host_gpu_temperature_celsius", "GPU temperature in degrees Celsius", group="temperature"
)
HOST_POWER = HamiFamily("hami_host_gpu_power_usage_watts", "GPU power draw in watts", group="power")

# Containers.
USED = HamiFamily(
    "hami_vgpu_memory_used_bytes",
    "vGPU device memory usage in bytes",
    "vGPU_device_memory_usage_in_bytes",
    "vGPU device usage",
)
LIMIT = HamiFamily(
    "hami_vgpu_memory_limit_bytes",
    "vGPU device memory limit in bytes",
    "vGPU_device_memory_limit_in_bytes",
    "vGPU device limit",
)
DEVICE_MEMORY = HamiFamily("hami_container_device_memory_bytes", "Container device memory usage in bytes")
OLD_DEVICE_MEMORY = HamiFamily("", "", "Device_memory_desc_of_container", "Container device memory description")
UTILIZATION = HamiFamily(
    "hami_container_device_utilization_ratio",
    "Container device SM utilization ratio",
    "Device_utilization_desc_of_container",
    "Container device utilization description",
)
CONTEXT = HamiFamily("hami_vgpu_memory_context_bytes", "Container device memory context size in bytes")
MODULE = HamiFamily("hami_vgpu_memory_module_bytes", "Container device memory module size in bytes")
BUFFER = HamiFamily("hami_vgpu_memory_buffer_bytes", "Container device memory buffer size in bytes")
LAST_KERNEL = HamiFamily(
    "hami_container_last_kernel_elapsed_seconds",
    "Seconds since last kernel execution in container",
    "Device_last_kernel_of_container",
    "Container device last kernel description",
    joined=min,
)
MIG = HamiFamily(
    "hami_mig_device_info",
    "MIG runtime identity for a container allocation",
    "MigInfo",
    "Mig device information for container",
    joined=max,
)

# What the scheduler says of cards.
_capacity = partial(HamiFamily, group="capacity")
CARD_MEMORY_LIMIT = _capacity(
    "hami_gpu_memory_limit_bytes", "Device memory limit for a certain GPU", "GPUDeviceMemoryLimit"
)
CARD_CORE_LIMIT = _capacity(
    "hami_gpu_core_limit_ratio",
    "Device core limit for a certain GPU",
    "GPUDeviceCoreLimit",
    "Device memory core limit for a certain GPU",
)
CARD_MEMORY = _capacity(
    "hami_gpu_memory_allocated_bytes", "Device memory allocated for a certain GPU", "GPUDeviceMemoryAllocated"
)
CARD_CORE = _capacity(
    "hami_gpu_core_allocated_ratio", "Device core allocated for a certain GPU", "GPUDeviceCoreAllocated"
)
CARD_SHARED = _capacity("hami_gpu_shared_count", "Number of containers sharing this GPU", "GPUDeviceSharedNum")
OVERVIEW = _capacity("hami_node_gpu_overview", "GPU overview on a certain node")
OLD_OVERVIEW = _capacity("", "", "nodeGPUOverview", OVERVIEW.help)
CARD_RATIO = _capacity("hami_node_gpu_memory_allocated_ratio", "GPU Memory Allocated Percentage on a certain GPU")
OLD_CARD_RATIO = _capacity("", "", "nodeGPUMemoryPercentage", CARD_RATIO.help)
CARD_MIG = _capacity(
    "hami_node_gpu_mig_instance_info", "Realized MIG instance identity and scheduler placement", joined=max
)
OLD_CARD_MIG = _capacity(
    "", "", "nodeGPUMigInstance", "GPU Sharing mode. 0 for hami-core, 1 for mig, 2 for mps", joined=max
)

# What the scheduler says of pods.
POD_MEMORY = HamiFamily(
    "hami_vgpu_memory_allocated_bytes", "vGPU memory allocated from a container", "vGPUMemoryAllocated"
)
POD_CORE = HamiFamily("hami_vgpu_core_allocated_ratio", "vGPU core allocated from a container", "vGPUCoreAllocated")
POD_RATIO = HamiFamily("", "", "vGPUMemoryPercentage", "vGPU memory percentage allocated from a container")
POD_OLD_CORE = HamiFamily("", "", "vGPUCorePercentage", POD_CORE.help)
POD_DEVICE = HamiFamily("", "", "vGPUPodsDeviceAllocated", "vGPU Allocated from pods")
