"""The shape of a catalog row: a measurable thing, its unit, how NVML reads it, and what other systems call it."""

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import Any

from msgspec import Struct

BASE_UNITS = ("bytes_per_second", "bytes", "celsius", "hertz", "joules", "ratio", "seconds", "watts")


class Unit(Struct, frozen=True):
    """A unit of devices and other systems. A value times `factor` is in the base unit, between `floor` and `ceiling`.

    A ceiling is far above what cards will report in the next years, and far below the all-ones patterns that drivers
    return for unknown values. `words` are what dcgm-exporter says of it in a HELP.
    """

    symbol: str
    factor: float = 1.0
    ceiling: float = 2.0**63
    floor: float = 0.0
    words: str = ""

    def base(self, value: float) -> float:
        """Dividing by 1000 is exact where multiplying by 0.001 is not: 1234 mJ is 1.234 J to the last digit."""
        return value * self.factor if self.factor >= 1 else value / round(1 / self.factor)


_COUNT_CEILING = 2.0**62
_SIZE_CEILING = 2.0**50
_RATE_CEILING = 2.0**50
_TIME_CEILING = 1e10
_ENERGY_CEILING = 1e15

COUNT = Unit("", ceiling=_COUNT_CEILING)
FLAG = Unit("", ceiling=1.0)
RATIO = Unit("ratio", ceiling=1.0, words="0 to 1")
PERCENT = Unit("%", 0.01, 1.0, words="in %")
# The quotient of two counters that are not read at the same instant, so a busy card may show 100.3 %.
PROFILED_PERCENT = Unit("%", 0.01, 1.01)
# 100 % is full speed, but NVML documents that a fan may turn faster.
FAN_PERCENT = Unit("%", 0.01, 2.0, words="in %")

BYTES = Unit("B", ceiling=2.0**62, words="in bytes")
KIB = Unit("KiB", 2.0**10, 2.0**62)
MIB = Unit("MiB", 2.0**20, _SIZE_CEILING, words="in MiB")
# Bytes of memory. BYTES is for those that have crossed a link since boot.
MEMORY_BYTES = Unit("B", ceiling=_SIZE_CEILING)

BYTES_PER_SECOND = Unit("B/s", ceiling=_RATE_CEILING)
KILOBYTES_PER_SECOND = Unit("kB/s", 1e3, _RATE_CEILING)
MEGABYTES_PER_SECOND = Unit("MB/s", 1e6, _RATE_CEILING)
MIB_PER_SECOND = Unit("MiB/s", 2.0**20, _RATE_CEILING)

MILLIWATTS = Unit("mW", 1e-3, 1e5)
WATTS = Unit("W", ceiling=1e5, words="in W")
MILLIJOULES = Unit("mJ", 1e-3, _ENERGY_CEILING, words="in mJ")
JOULES = Unit("J", ceiling=_ENERGY_CEILING, words="in J")
CELSIUS = Unit("°C", ceiling=250.0, floor=-273.15, words="in C")
MEGAHERTZ = Unit("MHz", 1e6, 1e11, words="in MHz")
HERTZ = Unit("Hz", ceiling=1e11, words="in Hz")

SECONDS = Unit("s", ceiling=_TIME_CEILING, words="in s")
NANOSECONDS = Unit("ns", 1e-9, _TIME_CEILING, words="in ns")

# The driver reports 32 for unknown.
PERFORMANCE_STATE = Unit("", ceiling=15.0)
COMPUTE_MODE = Unit("", ceiling=3.0)
LINK_GENERATION = Unit("", ceiling=32.0)
LINK_WIDTH = Unit("", ceiling=64.0)


class Kind(Enum):
    """A metric's Prometheus type."""

    GAUGE = "gauge"
    COUNTER = "counter"
    INFO = "info"
    SUMMARY = "summary"  # of other systems only


class Cadence(Enum):
    """How often a value is read.

    COSTLY counters take a large part of a cycle's time and lose nothing if they are read every few seconds. SLOW values
    change rarely or cost even more.
    """

    EVERY_CYCLE = "every cycle"
    COSTLY = "every 5 s"
    SLOW = "every 30 s"


class Worth(Enum):
    """How important a row is. If a page has too many series, the lowest are dropped first."""

    DETAIL = 0
    USEFUL = 1
    CORE = 2
    VITAL = 3


class Stability(Enum):
    """What is promised about a row's name, type and labels: docs/stability.md."""

    STABLE = "stable"
    EXPERIMENTAL = "experimental"


_CARD = ("node", "gpu", "uuid")
_CONTAINER = (*_CARD, "mig", "namespace", "pod", "container")
_WORKLOAD = ("namespace", "workload_kind", "workload_name", "container", "model")


class Scope(Enum):
    """What a value describes. It gives the prefix of the native name, and the labels of every such series.

    `worth` and `stability` are those of its rows, unless a row has its own.
    """

    GPU = ("podgpu_gpu_", _CARD)
    MIG = ("podgpu_mig_", (*_CARD, "mig", "profile"))
    CONTAINER = ("podgpu_container_", _CONTAINER)
    UNATTRIBUTED = ("podgpu_unattributed_", _CARD)
    ENDED = ("podgpu_ended_", _CARD)
    PROCESS = ("podgpu_process_", _CONTAINER, Worth.DETAIL, Stability.EXPERIMENTAL)
    CLUSTER_NODE = ("podgpu_cluster_", ("node",), Worth.CORE, Stability.EXPERIMENTAL)
    CLUSTER = ("podgpu_cluster_", (), Worth.CORE, Stability.EXPERIMENTAL)
    WORKLOAD = ("podgpu_workload_", _WORKLOAD, Worth.CORE, Stability.EXPERIMENTAL)
    AGENT = ("podgpu_", ("node",), Worth.VITAL)

    def __init__(
        self,
        prefix: str,
        labels: tuple[str, ...],
        worth: Worth = Worth.USEFUL,
        stability: Stability = Stability.STABLE,
    ) -> None:
        self.prefix = prefix
        self.labels = labels
        self.worth = worth
        self.stability = stability


class Call(Struct, frozen=True):
    """`nvmlDeviceGet<function>(handle, *args)`.

    `pick` takes an attribute or item of the answer, or is a function that finds the value in it. `bit` is a mask: the
    value is 1 if that bit is set, else 0. Rows with the same function and arguments share a call.
    """

    function: str
    unit: Unit
    args: tuple[int, ...] = ()
    pick: str | int | Callable[[Any], float | None] | None = None
    bit: int | None = None


class Field(Struct, frozen=True):
    """A field value. All fields of a cycle are read in one batch. `scope` is the field's scope id.

    With `links`, the driver has the field for each NVLink alone: its scopes are that many links, and the value is the
    sum over those that a card has.
    """

    id: int
    unit: Unit
    scope: int = 0
    links: int = 0

    @property
    def scopes(self) -> tuple[int, ...]:
        return tuple(range(self.links)) if self.links else (self.scope,)


class Gpm(Struct, frozen=True):
    """A GPM metric: the mean between two samples of the profiling counters.

    The driver answers 0 for engines and links that a card does not have, so a `doubtful` row is absent until it has
    been above 0 once. An `integral` row is a counter: the sum of a rate over time. `part_of` is the id of a metric that
    includes this one: while that was never above 0, this one is not asked for.
    """

    id: int
    unit: Unit
    doubtful: bool = False
    integral: bool = False
    part_of: int | None = None


Way = Call | Field | Gpm


class Alias(Struct, frozen=True):
    """What another system calls the same thing. Its value is ours divided by `unit.factor`."""

    name: str
    unit: Unit
    help: str
    kind: Kind = Kind.GAUGE


class OtelName(Struct, frozen=True):
    """The name in OpenTelemetry's semantic conventions, with the attributes of this row.

    `up_down` says that the conventions make it an UpDownCounter. `unit` is theirs, where the native name has none.
    """

    name: str
    attributes: tuple[tuple[str, str], ...] = ()
    up_down: bool = False
    unit: str = ""


# Each row exists once, so rows compare by identity, which makes them cheap keys.
class Metric(Struct, frozen=True, kw_only=True, eq=False):
    """A row. Rows with the same name form a family, with the same kind, help and label names.

    `labels` distinguish the rows of a family. `own_labels` are the names of labels that get their values from the
    reading. `mig` says that MIG instances have this reading too. A family is as stable as its rows, which agree.
    `dcgm_also` are further names in dcgm-exporter, which are on its pages only where a counters file lists them.
    `asked` says that alerts or dashboards need the row, so it is served by default even if it is a detail.
    """

    name: str
    kind: Kind
    help: str
    scope: Scope = Scope.GPU
    read: Way | None = None
    labels: tuple[tuple[str, str], ...] = ()
    own_labels: tuple[str, ...] = ()
    cadence: Cadence = Cadence.EVERY_CYCLE
    worth: Worth = Worth.USEFUL
    stability: Stability = Stability.STABLE
    mig: bool = False
    asked: bool = False
    dcgm: Alias | None = None
    dcgm49: Alias | None = None
    dcgm1x: Alias | None = None
    dcgm_also: tuple[Alias, ...] = ()
    otel: OtelName | None = None

    @property
    def family(self) -> str:
        return self.scope.prefix + self.name

    @property
    def base_unit(self) -> str:
        """The unit at the end of the native name; empty for plain numbers."""
        name = self.name.removesuffix("_total")
        return next((unit for unit in BASE_UNITS if name.endswith("_" + unit)), "")

    @property
    def is_detail(self) -> bool:
        """Whether podgpu's own page has it only on request."""
        return self.worth is Worth.DETAIL and not self.asked and self.scope is not Scope.PROCESS

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names of the labels that a reading of this row has values for, in order."""
        return (*(name for name, _ in self.labels), *self.own_labels)

    @property
    def label_values(self) -> tuple[str, ...]:
        return tuple([value for _, value in self.labels])


# From 4.9 on, names in dcgm-exporter end in their unit.
_DCGM_49_UNITS = {
    "_RATIO": RATIO,
    "_BYTES": BYTES,
    "_BYTES_PER_SECOND": BYTES_PER_SECOND,
    "_CELSIUS": CELSIUS,
    "_HERTZ": HERTZ,
    "_JOULES_TOTAL": JOULES,
    "_SECONDS_TOTAL": SECONDS,
    "_WATTS": WATTS,
}


def _aliases(text: str, unit: Unit, words: str, kind: Kind) -> list[Alias | None]:
    names = [*text.split(), "-", "-", "-"][:3]
    units = [unit, unit, unit]
    if names[1] == "=":
        names[1] = names[0]
    else:
        units[1] = next((known for end, known in _DCGM_49_UNITS.items() if names[1].endswith(end)), unit)
    return [
        None if name == "-" else Alias(name, in_unit, words.replace("{unit}", in_unit.words), kind)
        for name, in_unit in zip(names, units, strict=True)
    ]


def _row(
    kind: Kind,
    name: str,
    meaning: str,
    read: Way | None = None,
    *,
    scope: Scope | None = None,
    labels: Mapping[str, str] | None = None,
    own_labels: tuple[str, ...] = (),
    cadence: Cadence = Cadence.EVERY_CYCLE,
    worth: Worth | None = None,
    stability: Stability | None = None,
    mig: bool = False,
    asked: bool = False,
    dcgm: str = "",
    dcgm_help: str = "",
    dcgm_unit: Unit | None = None,
    dcgm_kind: Kind | None = None,
    dcgm49: Alias | None = None,
    dcgm1x: Alias | None = None,
    dcgm_also: tuple[Alias, ...] = (),
    otel: OtelName | None = None,
) -> Metric:
    """Make a row from its full name, whose prefix gives the scope. `podgpu_cluster_` means CLUSTER_NODE.

    `dcgm` are its names in dcgm-exporter up to 4.8, from 4.9 on and in 1.x: `-` where it has none, `=` where 4.9 kept
    the name. `{unit}` in `dcgm_help` stands for the unit: that of the reading, unless `dcgm_unit` is given. `dcgm49`
    and `dcgm1x` are for names with a HELP of their own.
    """
    found = scope or next(scope for scope in Scope if name.startswith(scope.prefix))
    unit = dcgm_unit or (read.unit if read else COUNT)
    old, new, v1 = _aliases(dcgm, unit, dcgm_help, dcgm_kind or kind)
    return Metric(
        name=name.removeprefix(found.prefix),
        kind=kind,
        help=meaning,
        scope=found,
        read=read,
        labels=tuple((labels or {}).items()),
        own_labels=own_labels,
        cadence=cadence,
        worth=worth or found.worth,
        stability=stability or found.stability,
        mig=mig,
        asked=asked,
        dcgm=old,
        dcgm49=dcgm49 or new,
        dcgm1x=dcgm1x or v1,
        dcgm_also=dcgm_also,
        otel=otel,
    )


gauge = partial(_row, Kind.GAUGE)
counter = partial(_row, Kind.COUNTER)
info = partial(_row, Kind.INFO)

COSTLY = Cadence.COSTLY
SLOW = Cadence.SLOW
DETAIL, CORE, VITAL = Worth.DETAIL, Worth.CORE, Worth.VITAL
EXPERIMENTAL = Stability.EXPERIMENTAL
