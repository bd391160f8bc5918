"""Which families a page has: dcgm-exporter's default counters, or those listed in a file; and the page's options."""

import csv
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from podgpu import catalog, option
from podgpu.catalog.row import JOULES, RATIO, SECONDS, WATTS, Alias, Kind, Metric, Unit, Worth
from podgpu.errors import UserError
from podgpu.model import Gpu, Snapshot
from podgpu.option.file import text_file
from podgpu.option.value import OneOf, on_off
from podgpu.views.dialects._dcgm import derived
from podgpu.views.sample_format import Writing, whole_numbers
from podgpu.views.series import Family, Key

TYPES = ("gauge", "counter", "label")
COLUMNS = 3

_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_FORM = "write FIELD, TYPE, HELP, such as: DCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (in C)."


@dataclass(frozen=True, slots=True)
class ListedCounter:
    """One line. `type` is one of TYPES; a `label` is a fact that every series carries."""

    field: str
    type: str
    help: str


@dataclass(frozen=True, slots=True)
class CountersFile:
    """The file as it was when it was read. A field that is listed twice counts as it is listed first."""

    path: str
    listed: tuple[ListedCounter, ...]


def counters_file(path: str, text: str) -> CountersFile:
    first: dict[str, ListedCounter] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip(' \t\r,"') and not line.lstrip().startswith("#"):
            counter = _listed_line(line.strip(), f"{path}: line {number}")
            first.setdefault(counter.field, counter)
    if not first:
        raise UserError(f"{path}: no line names a counter; {_FORM}")
    return CountersFile(path, tuple(first.values()))


def _listed_line(line: str, place: str) -> ListedCounter:
    try:
        (columns,) = csv.reader([line], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError):
        raise UserError(f"{place}: a double quote is not closed, or text follows it; {_FORM}") from None
    if len(columns) > COLUMNS:
        raise UserError(f"{place}: {len(columns)} columns; put a HELP that has commas in double quotes")
    if len(columns) < COLUMNS:
        raise UserError(f"{place}: {len(columns)} of 3 columns; {_FORM}")
    field, kind, words = map(str.strip, columns)
    if not _FIELD.fullmatch(field):
        raise UserError(f"{place}: {field[:40]!r} is not the name of a field; {_FORM}")
    if kind not in TYPES:
        raise UserError(f"{place}: {kind[:40]!r} is not a type; write gauge, counter or label")
    return ListedCounter(field, kind, words)


@dataclass(frozen=True, kw_only=True)
class DcgmPageOptions:
    collectors: CountersFile | None = option.DIALECTS.optional(
        "--dcgm.collectors",
        help="Counters of the dcgm pages: a CSV file as dcgm-exporter reads it.",
        parse=text_file(counters_file, kibibytes=1024, advice="give a file of counters, as dcgm-exporter reads it"),
        default_note="dcgm-exporter's default counters",
        also_from=("DCGM_EXPORTER_COLLECTORS",),
    )
    hostname_label: str = option.DIALECTS.single(
        "--dcgm.hostname-label",
        help="How /metrics/dcgm spells the node's label: dcgm-exporter changed it in 4.8.3.",
        parse=OneOf(("Hostname", "hostname")),
        default="Hostname",
    )
    per_container: str = option.DIALECTS.single(
        "--dcgm.per-container",
        help="Whether the dcgm pages and container-json have a row for each container of a shared GPU.",
        parse=on_off,
        default="off",
        also_from=("KUBERNETES_VIRTUAL_GPUS",),
    )
    pod_uid: str = option.DIALECTS.single(
        "--dcgm.pod-uid",
        help="Whether rows of the dcgm pages carry the UID of their pod.",
        parse=on_off,
        default="off",
        also_from=("DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID",),
    )
    pod_labels: str = option.DIALECTS.single(
        "--dcgm.pod-labels",
        help="Whether rows of the dcgm pages carry the labels of their pod that --kube.pod-labels allows.",
        parse=on_off,
        default="off",
        also_from=("DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS",),
    )


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
    Fact("DCGM_FI_DEV_INFOROM_IMAGE_VER", "DCGM_FI_DEV_INFOROM_IMAGE_VERSION", lambda _, gpu: gpu.inforom_image),
    Fact("DCGM_FI_DEV_OEM_INFOROM_VER", "DCGM_FI_DEV_INFOROM_OEM_VERSION", lambda _, gpu: gpu.inforom_oem),
    Fact("DCGM_FI_DEV_ECC_INFOROM_VER", "DCGM_FI_DEV_INFOROM_ECC_VERSION", lambda _, gpu: gpu.inforom_ecc),
    Fact("DCGM_FI_DEV_POWER_INFOROM_VER", "DCGM_FI_DEV_INFOROM_POWER_VERSION", lambda _, gpu: gpu.inforom_power),
)


@dataclass(frozen=True, slots=True)
class Counter:
    """One family. Its value is the sum over its rows."""

    name: str
    kind: Kind
    help: str
    unit: Unit
    rows: tuple[Metric, ...]

    def family(self, samples: dict[Key, float], fractions: Writing) -> Family:
        """`fractions` is how numbers are written that DCGM has decimals of."""
        worth = Worth(max(row.worth.value for row in self.rows))
        group = derived.GROUPS.get(self.rows[0].name) or catalog.group_of(self.rows[0])
        writing = fractions if self.unit in FRACTIONS else whole_numbers
        return Family(self.name, self.kind, self.help, worth, samples, group, writing)


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

    alias: Callable[[Metric], Alias | None]
    fact_name: Callable[[Fact], str]
    defaults: tuple[str, ...]
    hostname: str
    fractions: Writing


def every(aliases: Callable[[Metric], Iterable[Alias | None]]) -> dict[str, Counter]:
    """Every family that the rows have an alias for, by name."""
    found: dict[str, Counter] = {}
    for row in _ROWS:
        for alias in filter(None, aliases(row)):
            known = found.get(alias.name, Counter(alias.name, alias.kind, alias.help, alias.unit, ()))
            if row not in known.rows:
                found[alias.name] = replace(known, rows=(*known.rows, row))
    return found


# The fields of all versions.
FIELDS = every(lambda row: (row.dcgm, row.dcgm49, row.dcgm1x, *row.dcgm_also))


@lru_cache(maxsize=16)
def select(generation: Generation, file: CountersFile | None, *, full: bool = False) -> SelectedCounters:
    """Choose what the page has; if it is to be `full`, also every other field of this version.

    A file may list names of any version. Each is printed as it is listed, in the unit of that name.
    """
    own = every(lambda row: (generation.alias(row),))
    if file:
        counters = {listed.field: found for listed in file.listed if (found := _listed(listed))}
        facts = {listed.field: fact for listed in file.listed if (fact := _fact(listed))}
    else:
        shown = (generation.alias(FIELDS[name].rows[0]) for name in generation.defaults if name in FIELDS)
        counters = {alias.name: own[alias.name] for alias in shown if alias}
        facts = {generation.fact_name(fact): fact for fact in FACTS if fact.dcgm in generation.defaults}
    if full:
        counters |= {name: counter for name, counter in own.items() if name not in counters}
    # Labels are sorted by name, whatever their order in the file.
    return SelectedCounters(tuple(counters.values()), tuple(sorted(facts.items(), key=lambda item: item[0])))


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
