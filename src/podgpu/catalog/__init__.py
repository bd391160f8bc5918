"""Everything podgpu can measure, one row each. To add a metric, add a row.

A dialect prints a row under its alias. If rows share an alias, as both directions of NVLink do, it prints their sum.
"""

from msgspec.structs import replace

from podgpu.catalog import agent, cluster, container, gpu, health, link, power, profiling
from podgpu.catalog.row import Metric, Scope

TOPICS: tuple[tuple[str, tuple[Metric, ...]], ...] = (
    ("The agent", agent.ROWS),
    ("Presence", gpu.PRESENCE),
    ("Use", gpu.USE),
    ("Memory", gpu.MEMORY_ROWS),
    ("Clocks", gpu.CLOCKS),
    ("Power and energy", power.POWER + power.LIMITS),
    ("Temperature", power.HEAT),
    ("Errors", health.ERRORS),
    ("Memory errors", health.MEMORY_ERRORS),
    ("Throttling", health.THROTTLING),
    ("PCIe", link.PCIE),
    ("NVLink", link.NVLINK),
    ("Profiling", profiling.ROWS),
    ("Containers", container.CONTAINERS),
    ("Booked to no container", container.UNATTRIBUTED),
    ("Booked to containers that have ended", container.ENDED),
    ("The books of a GPU", container.BALANCES),
    ("Context switches", container.SWITCHES),
    ("Pods", container.PODS),
    ("Processes", container.PROCESSES),
    ("The cluster: itself", cluster.ITSELF),
    ("The cluster: what there is and who was given it", cluster.CAPACITY),
    ("The cluster: use", cluster.USE),
    ("The cluster: who waits", cluster.WAITING),
)

CATALOG: tuple[Metric, ...] = tuple(row for _, rows in TOPICS for row in rows)


# The groups that a client of a page can choose.
_GROUPS: dict[str, str] = {
    "The agent": "agent",
    "Presence": "presence",
    "Use": "use",
    "Memory": "memory",
    "Clocks": "clocks",
    "Power and energy": "power",
    "Temperature": "temperature",
    "Errors": "errors",
    "Memory errors": "memory-errors",
    "Throttling": "throttling",
    "PCIe": "pcie",
    "NVLink": "nvlink",
    "Profiling": "profiling",
    "Containers": "containers",
    "Booked to no container": "unattributed",
    "Booked to containers that have ended": "ended",
    "The books of a GPU": "books",
    "Context switches": "context-switches",
    "Pods": "pods",
    "Processes": "processes",
    "The cluster: itself": "cluster",
    "The cluster: what there is and who was given it": "capacity",
    "The cluster: use": "use",
    "The cluster: who waits": "waiting",
}
GROUPS: tuple[str, ...] = tuple(dict.fromkeys(_GROUPS[title] for title, _ in TOPICS))
_GROUP_OF = {row.family: _GROUPS[title] for title, rows in TOPICS for row in rows}


def group_of(row: Metric) -> str:
    """Name the group of a row of the catalog. MIG instances are in that of their GPUs."""
    scope = Scope.GPU if row.scope is Scope.MIG else row.scope
    return _GROUP_OF[scope.prefix + row.name]


def device_rows() -> tuple[Metric, ...]:
    """List the rows that a GPU can have readings for."""
    return tuple(row for row in CATALOG if row.scope is Scope.GPU)


def instance_rows() -> tuple[Metric, ...]:
    """List the rows that MIG instances have too, in families of their own."""
    return tuple(replace(row, scope=Scope.MIG) for row in CATALOG if row.mig)


def families() -> dict[str, tuple[Metric, ...]]:
    """Group rows by family name, in page order, MIG instances last."""
    grouped: dict[str, tuple[Metric, ...]] = {}
    for row in (*CATALOG, *instance_rows()):
        grouped[row.family] = (*grouped.get(row.family, ()), row)
    return grouped
