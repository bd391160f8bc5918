"""Which families a page has: the default counters of dcgm-exporter, or those listed in a file for it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from podgpu import catalog
from podgpu.catalog.row import Alias, Kind, Metric, Unit, Worth
from podgpu.views.dialects._dcgm.collectors import Collector, Collectors
from podgpu.views.dialects._dcgm.facts import FACTS, Fact

AliasOf = Callable[[Metric], Alias | None]

_ROWS = catalog.device_rows()


@dataclass(frozen=True, slots=True)
class Counter:
    """One family. Its value is the sum over its rows."""

    name: str
    kind: Kind
    help: str
    unit: Unit
    rows: tuple[Metric, ...]

    @property
    def worth(self) -> Worth:
        return Worth(max(row.worth.value for row in self.rows))


@dataclass(frozen=True, slots=True)
class Selection:
    counters: tuple[Counter, ...]
    facts: tuple[tuple[str, Fact], ...] = ()


@dataclass(frozen=True, slots=True)
class Generation:
    """How a version of dcgm-exporter names rows and facts, and what it shows by default."""

    alias: AliasOf
    fact_name: Callable[[Fact], str]
    defaults: tuple[str, ...]


def every(alias: AliasOf) -> tuple[Counter, ...]:
    """Every family that the rows have an alias for."""
    grouped: dict[str, tuple[Metric, ...]] = {}
    for row in _ROWS:
        if found := alias(row):
            grouped[found.name] = (*grouped.get(found.name, ()), row)
    return tuple(_counter(found, rows) for rows in grouped.values() if (found := alias(rows[0])))


@lru_cache(maxsize=8)
def select(generation: Generation, collectors: Collectors | None) -> Selection:
    """A field may be listed by its name in any generation, so one file serves all pages."""
    wanted = collectors.listed if collectors else _by_name(generation.defaults)
    counters: dict[str, Counter] = {}
    facts: dict[str, Fact] = {}
    for one in wanted:
        if fact := _fact(one):
            facts.setdefault(generation.fact_name(fact), fact)
        elif (rows := _rows(one)) and (alias := generation.alias(rows[0])):
            counters.setdefault(alias.name, _counter(alias, rows, one))
    # Labels are sorted by name, whatever their order in the file.
    return Selection(tuple(counters.values()), tuple(sorted(facts.items(), key=lambda item: item[0])))


def unavailable(collectors: Collectors | None) -> tuple[str, ...]:
    """The fields of the file that no page can provide."""
    listed = collectors.listed if collectors else ()
    return tuple(one.field for one in listed if not _fact(one) and not _rows(one))


def _by_name(names: Iterable[str]) -> tuple[Collector, ...]:
    known = {name for fact in FACTS for name in (fact.dcgm, fact.dcgm49)}
    return tuple(Collector(name, "label" if name in known else "", "") for name in names)


def _fact(one: Collector) -> Fact | None:
    if one.type != "label":
        return None
    return next((fact for fact in FACTS if one.field in (fact.dcgm, fact.dcgm49)), None)


def _rows(one: Collector) -> tuple[Metric, ...]:
    return _ROWS_BY_FIELD.get(one.field, ()) if one.type != "label" else ()


def _counter(alias: Alias, rows: tuple[Metric, ...], listed: Collector | None = None) -> Counter:
    """Type and HELP are those of the file, if it lists the field by this very name."""
    if listed and listed.type and listed.field == alias.name:
        return Counter(alias.name, Kind(listed.type), listed.help, alias.unit, rows)
    return Counter(alias.name, alias.kind, alias.help, alias.unit, rows)


def _rows_by_field() -> dict[str, tuple[Metric, ...]]:
    found: dict[str, dict[Metric, None]] = {}
    for row in _ROWS:
        for alias in filter(None, (row.dcgm, row.dcgm49, row.dcgm1x)):
            found.setdefault(alias.name, {})[row] = None
    return {field: tuple(rows) for field, rows in found.items()}


_ROWS_BY_FIELD = _rows_by_field()

# default-counters.csv without the vGPU licence, the only one of its fields that podgpu does not read.
DEFAULTS = (
    "DCGM_FI_DEV_SM_CLOCK",
    "DCGM_FI_DEV_MEM_CLOCK",
    "DCGM_FI_DEV_MEMORY_TEMP",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_MEM_COPY_UTIL",
    "DCGM_FI_DEV_ENC_UTIL",
    "DCGM_FI_DEV_DEC_UTIL",
    "DCGM_FI_DEV_XID_ERRORS",
    "DCGM_FI_DEV_FB_FREE",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_FB_RESERVED",
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE",
    "DCGM_FI_DRIVER_VERSION",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "DCGM_FI_PROF_DRAM_ACTIVE",
    "DCGM_FI_PROF_PCIE_TX_BYTES",
    "DCGM_FI_PROF_PCIE_RX_BYTES",
)
