"""The shape of a catalog row: one measurable thing, how NVML reads it, and what other systems call it."""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """A metric's Prometheus type."""

    GAUGE = "gauge"
    COUNTER = "counter"
    INFO = "info"


_CARD = ("node", "gpu", "uuid")
_CONTAINER = (*_CARD, "mig", "namespace", "pod", "container")


class Scope(Enum):
    """What a value belongs to: the prefix of the native name, and the labels that every such series carries."""

    GPU = ("podgpu_gpu_", _CARD)
    MIG = ("podgpu_mig_", (*_CARD, "mig", "profile"))
    CONTAINER = ("podgpu_container_", _CONTAINER)
    UNATTRIBUTED = ("podgpu_unattributed_", _CARD)
    ENDED = ("podgpu_ended_", _CARD)
    PROCESS = ("podgpu_process_", _CONTAINER)
    AGENT = ("podgpu_", ("node",))

    def __init__(self, prefix: str, labels: tuple[str, ...]) -> None:
        self.prefix = prefix
        self.labels = labels


class Cadence(Enum):
    """How often a value is read. SLOW values change rarely or cost much."""

    EVERY_CYCLE = "every cycle"
    SLOW = "slow"


class Worth(Enum):
    """What is dropped first when the series budget is exceeded: the lowest."""

    DETAIL = 0
    USEFUL = 1
    CORE = 2
    VITAL = 3


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of the outside world: times `factor` it is the base unit; a base value above `ceiling` cannot be true."""

    symbol: str
    factor: float = 1.0
    ceiling: float = 2.0**63


@dataclass(frozen=True, slots=True)
class Call:
    """`nvmlDeviceGet<function>(handle, *args)`.

    `pick` takes one attribute or one item of the answer, `bit` is a mask: 1 when that bit is set, else 0. Rows that
    share function and arguments share one call.
    """

    function: str
    unit: Unit
    args: tuple[int, ...] = ()
    pick: str | int | None = None
    bit: int | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """A field value; all of a cycle's fields are read in one batch. `scope` is the field's scope id."""

    id: int
    unit: Unit
    scope: int = 0


@dataclass(frozen=True, slots=True)
class Gpm:
    """A GPM metric id: the mean between two samples of the profiling counters.

    The driver answers 0 for engines and links a card does not have: a `doubtful` row is absent until it has read
    more than 0 once. An `integral` row is a counter, the sum of a rate over time.
    """

    id: int
    unit: Unit
    doubtful: bool = False
    integral: bool = False


Way = Call | Field | Gpm


@dataclass(frozen=True, slots=True)
class Alias:
    """What another system calls the same thing. Its value is ours divided by `unit.factor`."""

    name: str
    unit: Unit
    help: str
    kind: Kind = Kind.GAUGE


@dataclass(frozen=True, slots=True)
class OtelName:
    """The name by OpenTelemetry's semantic conventions, with the attributes that go with this very row."""

    name: str
    attributes: tuple[tuple[str, str], ...] = ()


# Each row exists once: compared by identity, it is a cheap key.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Metric:
    """One row. Rows of one name form a family and agree in kind, help and label names.

    `labels` are the label pairs that tell this row from its family's others; `own_labels` are label names
    whose values come with the reading. `mig` says that a MIG instance has this reading too.
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
    mig: bool = False
    dcgm: Alias | None = None
    dcgm49: Alias | None = None
    dcgm1x: Alias | None = None
    otel: OtelName | None = None

    @property
    def family(self) -> str:
        return self.scope.prefix + self.name

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the labels a reading of this row carries values for, in order."""
        return (*(name for name, _ in self.labels), *self.own_labels)

    @property
    def label_values(self) -> tuple[str, ...]:
        return tuple(value for _, value in self.labels)
