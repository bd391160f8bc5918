"""Everything podgpu can measure, one row each. To add a metric, add a row.

A dialect prints a row under its alias. If rows share an alias, as both directions of NVLink do, it prints their sum.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from podgpu.catalog import agent, cluster, container, gpu, health, link, power, profiling
from podgpu.catalog.row import Metric, Scope

# Titles, the groups that a client of a page can choose, and their rows.
_TOPICS: tuple[tuple[str, str, tuple[Metric, ...]], ...] = (
    ("The agent", "agent", agent.ROWS),
    ("Presence", "presence", gpu.PRESENCE),
    ("Use", "use", gpu.USE),
    ("Memory", "memory", gpu.MEMORY_ROWS),
    ("Clocks", "clocks", gpu.CLOCKS),
    ("Power and energy", "power", power.POWER + power.LIMITS),
    ("Temperature", "temperature", power.HEAT),
    ("Errors", "errors", health.ERRORS),
    ("Memory errors", "memory-errors", health.MEMORY_ERRORS),
    ("Throttling", "throttling", health.THROTTLING),
    ("PCIe", "pcie", link.PCIE),
    ("NVLink", "nvlink", link.NVLINK),
    ("Profiling", "profiling", profiling.ROWS),
    ("Containers", "containers", container.CONTAINERS),
    ("Booked to no container", "unattributed", container.UNATTRIBUTED),
    ("Booked to containers that have ended", "ended", container.ENDED),
    ("The books of a GPU", "books", container.BALANCES),
    ("Context switches", "context-switches", container.SWITCHES),
    ("Pods", "pods", (*container.PODS, *container.UNPLACED)),
    ("Processes", "processes", container.PROCESSES),
    ("The cluster: itself", "cluster", cluster.ITSELF),
    ("The cluster: what there is and what is allocated", "capacity", cluster.CAPACITY),
    ("The cluster: use", "use", cluster.USE),
    ("The cluster: who waits", "waiting", cluster.WAITING),
    ("What fits", "fit", cluster.FIT),
)

TOPICS: tuple[tuple[str, tuple[Metric, ...]], ...] = tuple((title, rows) for title, _, rows in _TOPICS)
CATALOG: tuple[Metric, ...] = tuple(row for _, rows in TOPICS for row in rows)
GROUPS: tuple[str, ...] = tuple(dict.fromkeys(group for _, group, _ in _TOPICS))
_GROUP_OF = {row.family: group for _, group, rows in _TOPICS for row in rows}


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
    return by_family((*CATALOG, *instance_rows()))


def by_family(rows: Iterable[Metric]) -> dict[str, tuple[Metric, ...]]:
    grouped: dict[str, tuple[Metric, ...]] = {}
    for row in rows:
        grouped[row.family] = (*grouped.get(row.family, ()), row)
    return grouped
