"""Which families a page has: the default counters of dcgm-exporter, or those listed in a file for it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from podgpu import catalog
from podgpu.catalog.row import Alias, Kind, Metric, Worth
from podgpu.catalog.units import JOULES, RATIO, SECONDS, WATTS, Unit
from podgpu.model import Gpu, Snapshot
from podgpu.views.dialects._dcgm import derived
from podgpu.views.dialects._dcgm.options import CountersFile, ListedCounter
from podgpu.views.sample_format import Writing, whole_numbers

AliasOf = Callable[[Metric], Alias | None]

LABEL = "label"

DECIMALS = 6  # as dcgm-exporter prints fractions
# Units in which DCGM has fractions. In the others it has whole numbers.
FRACTIONS = (WATTS, RATIO, JOULES, SECONDS)

_ROWS = (*catalog.device_rows(), *derived.ROWS)


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact about a card or its driver, which a file of counters can turn into a label.

    `dcgm49` is its name since 4.9. An unknown value makes no label.
    """

    dcgm: str
    dcgm49: str
    value: Callable[[Snapshot, Gpu], str | None]


FACTS = (
    Fact("DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION", lambda node, _: node.driver_version),
    Fact("DCGM_FI_NVML_VERSION", "DCGM_FI_SYSTEM_NVML_VERSION", lambda node, _: node.nvml_version),
    Fact("DCGM_FI_DEV_NAME", "DCGM_FI_DEV_GPU_NAME", lambda _, gpu: gpu.model),
    Fact("DCGM_FI_DEV_BRAND", "DCGM_FI_DEV_GPU_BRAND", lambda _, gpu: gpu.brand),
    Fact("DCGM_FI_DEV_SERIAL", "DCGM_FI_DEV_BOARD_SERIAL", lambda _, gpu: gpu.serial),
    Fact("DCGM_FI_DEV_UUID", "DCGM_FI_DEV_GPU_UUID", lambda _, gpu: gpu.uuid),
    Fact("DCGM_FI_DEV_PCI_BUSID", "DCGM_FI_DEV_PCI_BUS_ID", lambda _, gpu: gpu.pci_bus_id),
    Fact("DCGM_FI_DEV_NVML_INDEX", "DCGM_FI_DEV_NVML_INDEX", lambda _, gpu: str(gpu.index)),
    Fact(
        "DCGM_FI_DEV_MINOR_NUMBER",
        "DCGM_FI_DEV_GPU_MINOR_NUMBER",
        lambda _, gpu: None if gpu.minor is None else str(gpu.minor),
    ),
    Fact("DCGM_FI_DEV_VBIOS_VERSION", "DCGM_FI_DEV_VBIOS_VERSION", lambda _, gpu: gpu.vbios),
    Fact(
        "DCGM_FI_DEV_INFOROM_IMAGE_VER", "DCGM_FI_DEV_INFOROM_IMAGE_VERSION", lambda _, gpu: gpu.inforom_image
    ),
    Fact("DCGM_FI_DEV_OEM_INFOROM_VER", "DCGM_FI_DEV_INFOROM_OEM_VERSION", lambda _, gpu: gpu.inforom_oem),
    Fact("DCGM_FI_DEV_ECC_INFOROM_VER", "DCGM_FI_DEV_INFOROM_ECC_VERSION", lambda _, gpu: gpu.inforom_ecc),
    Fact(
        "DCGM_FI_DEV_POWER_INFOROM_VER", "DCGM_FI_DEV_INFOROM_POWER_VERSION", lambda _, gpu: gpu.inforom_power
    ),
)


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

    @property
    def is_fraction(self) -> bool:
        return self.unit in FRACTIONS

    @property
    def group(self) -> str:
        return derived.GROUPS.get(self.rows[0].name) or catalog.group_of(self.rows[0])


@dataclass(frozen=True, slots=True)
class SelectedCounters:
    """What a page shows: families, and facts as labels by name."""

    counters: tuple[Counter, ...]
    facts: tuple[tuple[str, Fact], ...] = ()

    @property
    def is_derived(self) -> bool:
        """Whether some counters are no plain readings."""
        return any(row in derived.ROWS for counter in self.counters for row in counter.rows)


@dataclass(frozen=True, slots=True)
class Generation:
    """How a version of dcgm-exporter names rows, facts and the node, what it shows by default, and how it writes."""

    alias: AliasOf
    fact_name: Callable[[Fact], str]
    defaults: tuple[str, ...]
    hostname: str
    fractions: Writing

    def writing(self, counter: Counter) -> Writing:
        return self.fractions if counter.is_fraction else whole_numbers


CounterChoice = Callable[[Generation, CountersFile | None], SelectedCounters]


def every(alias: AliasOf) -> tuple[Counter, ...]:
    """Every family that the rows have an alias for."""
    named = (found.name for row in _ROWS if (found := alias(row)))
    return tuple(_counter(alias, name) for name in dict.fromkeys(named))


@lru_cache(maxsize=8)
def select(generation: Generation, file: CountersFile | None) -> SelectedCounters:
    """Choose what the page has.

    A file may list names of any version. Each is printed as it is listed, in the unit of that name.
    """
    if file:
        counters = tuple(found for listed in file.listed if (found := _listed(listed)))
        facts = {listed.field: fact for listed in file.listed if (fact := _fact(listed))}
    else:
        counters = tuple(
            _counter(generation.alias, alias.name)
            for name in generation.defaults
            if (counter := FIELDS.get(name)) and (alias := generation.alias(counter.rows[0]))
        )
        facts = {generation.fact_name(fact): fact for fact in FACTS if fact.dcgm in generation.defaults}
    # Labels are sorted by name, whatever their order in the file.
    return SelectedCounters(counters, tuple(sorted(facts.items(), key=lambda item: item[0])))


@lru_cache(maxsize=8)
def select_all(generation: Generation, file: CountersFile | None) -> SelectedCounters:
    """Choose what the page has, and every other field of this version."""
    chosen = select(generation, file)
    names = {counter.name for counter in chosen.counters}
    others = (counter for counter in every(generation.alias) if counter.name not in names)
    return replace(chosen, counters=(*chosen.counters, *others))


def unavailable(file: CountersFile | None) -> tuple[str, ...]:
    """The fields of the file that no page can provide."""
    listed = file.listed if file else ()
    return tuple(counter.field for counter in listed if not _fact(counter) and not _listed(counter))


def _fact(listed: ListedCounter) -> Fact | None:
    if listed.type != LABEL:
        return None
    return next((fact for fact in FACTS if listed.field in (fact.dcgm, fact.dcgm49)), None)


def _listed(listed: ListedCounter) -> Counter | None:
    found = FIELDS.get(listed.field) if listed.type != LABEL else None
    return replace(found, kind=Kind(listed.type), help=listed.help) if found else None


def _counter(alias_of: AliasOf, name: str) -> Counter:
    rows = tuple(row for row in _ROWS if (alias := alias_of(row)) and alias.name == name)
    alias = alias_of(rows[0])
    assert alias is not None  # noqa: S101 - the rows were chosen by it
    return Counter(name, alias.kind, alias.help, alias.unit, rows)


def _fields() -> dict[str, Counter]:
    found: dict[str, Counter] = {}
    for row in _ROWS:
        for alias in filter(None, (row.dcgm, row.dcgm49, row.dcgm1x, *row.dcgm_also)):
            known = found.get(alias.name, Counter(alias.name, alias.kind, alias.help, alias.unit, ()))
            if row not in known.rows:
                found[alias.name] = replace(known, rows=(*known.rows, row))
    return found


# The fields of all versions, by name.
FIELDS = _fields()

# default-counters.csv, in the order in which dcgm-exporter prints: by DCGM's numbers of the fields.
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
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE",
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS",
    "DCGM_FI_DRIVER_VERSION",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "DCGM_FI_PROF_DRAM_ACTIVE",
    "DCGM_FI_PROF_PCIE_TX_BYTES",
    "DCGM_FI_PROF_PCIE_RX_BYTES",
)
