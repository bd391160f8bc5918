"""Native names, units and labels in OpenTelemetry's words.

A native name loses its unit and `_total`, which are fields of their own in OTLP: `podgpu_container_energy_joules_total`
becomes `podgpu.container.energy` in J. A collector that writes it for Prometheus makes the native name of it again.
Where two names differ in nothing else, both keep the unit.
"""

from collections import Counter
from collections.abc import Mapping

from podgpu import catalog
from podgpu.catalog.reference import base_unit
from podgpu.catalog.row import Metric, Scope
from podgpu.model import Workload

UNITS = {
    "bytes": "By",
    "bytes_per_second": "By/s",
    "celsius": "Cel",
    "hertz": "Hz",
    "joules": "J",
    "ratio": "1",
    "seconds": "s",
    "watts": "W",
}
_ATTRIBUTES = {
    "node": "k8s.node.name",
    "uuid": "hw.id",
    "gpu": "hw.name",
    "namespace": "k8s.namespace.name",
    "pod": "k8s.pod.name",
    "pod_uid": "k8s.pod.uid",
    "container": "k8s.container.name",
    "mig": "podgpu.mig.id",
}
_WORKLOADS = frozenset(
    {"CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}
)


def _names(row: Metric) -> tuple[str, str]:
    """Return the name without the unit, and with it."""
    prefix, name = row.scope.prefix.replace("_", "."), row.name.removesuffix("_total")
    return prefix + name.removesuffix(f"_{base_unit(row)}"), prefix + name


_SHORT = Counter(_names(rows[0])[0] for rows in catalog.families().values())


def own_name(row: Metric) -> str:
    """Write `podgpu.gpu.fan_speed` for `podgpu_gpu_fan_speed_ratio`."""
    short, long = _names(row)
    return short if _SHORT[short] == 1 else long


def unit(row: Metric) -> str:
    return UNITS.get(base_unit(row), "")


def standard(row: Metric) -> bool:
    """Whether the row goes by a name of the conventions. MIG instances do not: they would count twice."""
    return row.otel is not None and row.scope is Scope.GPU


def attributes(labels: Mapping[str, str]) -> dict[str, str]:
    """Translate labels. What is empty is left out: it says that there is nothing."""
    return {
        _ATTRIBUTES.get(name, name): f"GPU {value}" if name == "gpu" else value
        for name, value in labels.items()
        if value
    }


def workload_attributes(workload: Workload) -> dict[str, str]:
    """Name a workload of a kind that the conventions know as they do. A pod of its own needs no second name."""
    if workload.kind == "Pod":
        return {}
    if workload.kind in _WORKLOADS:
        return {f"k8s.{workload.kind.lower()}.name": workload.name}
    return {"podgpu.workload.kind": workload.kind, "podgpu.workload.name": workload.name}
