"""Who had how much of the GPUs between two times, and what it costs."""

from collections.abc import Iterable

from msgspec import Struct

from podgpu.model.card import BOUNDED, ESTIMATED, EXACT
from podgpu.model.kube import total_of_known

SECONDS_PER_HOUR = 3600
MICROSECONDS_PER_HOUR = SECONDS_PER_HOUR * 1_000_000
MILLIJOULES_PER_KWH = 3_600_000_000

# What a line is about. `group`: what the report is grouped by. `unattributed`: what podgpu booked to no container.
# `unbooked`: what the GPUs used and no agent booked. `idle`: time that was held and not used, in a bill by use.
# `free`: time that nobody held. `unseen`: time in which no agent was there to see a GPU.
KINDS = ("group", "unattributed", "unbooked", "idle", "free", "unseen")


class Coverage(Struct, frozen=True, kw_only=True):
    """Time of GPUs in microseconds: seen; there, but not seen; and not there."""

    seen_us: int = 0
    unseen_us: int = 0
    absent_us: int = 0

    @property
    def ratio(self) -> float | None:
        """How much of the time that GPUs were there was seen. None if there were none."""
        there = self.seen_us + self.unseen_us
        return self.seen_us / there if there else None


class GpuCoverage(Struct, frozen=True, kw_only=True):
    cluster: str
    node: str
    uuid: str
    model: str
    coverage: Coverage


class BusyRange(Struct, frozen=True, gc=False):
    """Microseconds of busy time. What is likely lies within what is proven, and what is booked within both."""

    least: int  # for certain
    most: int  # that it can have been
    likely_least: int
    likely_most: int
    is_estimate: bool = False  # whether any of what is booked rests on an assumption

    @property
    def certainty(self) -> str:
        """How sure the busy time is: `exact`, `bounded` or `estimated`."""
        if self.least == self.most:
            return EXACT
        return ESTIMATED if self.is_estimate else BOUNDED

    def added_to(self, other: "BusyRange | None") -> "BusyRange":
        """Add the busy time of another card, or of another time."""
        if other is None:
            return self
        return BusyRange(
            self.least + other.least,
            self.most + other.most,
            self.likely_least + other.likely_least,
            self.likely_most + other.likely_most,
            self.is_estimate or other.is_estimate,
        )


class StatementLine(Struct, frozen=True, kw_only=True):
    """Sums, in the books' own integers. A field that nobody measured is absent."""

    kind: str  # one of KINDS
    group: dict[str, str] = {}  # such as {"namespace": "ml"}; empty for the other kinds
    held_us: int | None = None  # microseconds of whole GPUs: the share that was given, times time
    unsized_us: int = 0  # microseconds of containers that held a share of unknown size, which `held_us` lacks
    busy_us: int | None = None  # microseconds in which the GPU worked
    busy_range: BusyRange | None = None  # what that can have been; in a bill by use
    energy_mj: int | None = None  # millijoules
    charged: int | None = None  # what it pays for itself: microseconds of whole GPUs, or millijoules by energy
    cost_units: int | None = None  # in the smallest unit of the currency; absent without a price for all of it
    shared_units: int | None = None  # how much of the cost is a share of what nobody held or used
    coverage: float | None = None  # how much of the time of the GPUs it was on was seen, from 0 to 1

    @property
    def gpu_hours(self) -> float | None:
        return None if self.held_us is None else self.held_us / MICROSECONDS_PER_HOUR

    @property
    def busy_hours(self) -> float | None:
        return None if self.busy_us is None else self.busy_us / MICROSECONDS_PER_HOUR

    @property
    def wasted_us(self) -> int | None:
        """What a group held and did not use; None if either is not known."""
        if self.kind != "group" or self.held_us is None or self.busy_us is None or self.unsized_us:
            return None
        return max(0, self.held_us - self.busy_us)

    @property
    def energy_kwh(self) -> float | None:
        return None if self.energy_mj is None else self.energy_mj / MILLIJOULES_PER_KWH


class Dispute(Struct, frozen=True, kw_only=True):
    """Something that cannot be true, or that somebody else denies. What it is about is not to be paid on this word."""

    reason: str  # `targets`, `jobs`, `held`, `busy`, `energy` or `place`
    detail: str  # a sentence
    cluster: str = ""
    node: str = ""
    uuid: str = ""
    jobs: tuple[str, ...] = ()  # the scrape jobs that said it


class ChargePeriod(Struct, frozen=True, kw_only=True):
    """The lines of a part of the period, such as a day."""

    start: float
    end: float
    lines: tuple[StatementLine, ...]


class Statement(Struct, frozen=True, kw_only=True):
    """The lines add up to the total, which is what the GPUs themselves counted."""

    start: float  # seconds since 1970; what was counted after it
    end: float  # seconds since 1970; what was counted until then
    by: tuple[str, ...]  # the names of the columns that make a group
    lines: tuple[StatementLine, ...] = ()  # groups, most held first; then the other kinds
    total: StatementLine = StatementLine(kind="total")  # of all GPUs; with a filter, of the lines
    basis: str = "held"  # what is paid for
    share: str = "none"  # how the cost of what nobody held or used is shared out
    currency: str = ""  # of the costs; empty without prices
    digits: int = 2  # decimals of the currency
    prices: dict[str, float] = {}  # of an hour of each model that is in the statement; `kwh` of energy
    gpus: int = 0  # how many there were
    coverage: Coverage = Coverage()  # of all of them
    by_gpu: tuple[GpuCoverage, ...] = ()
    periods: tuple[ChargePeriod, ...] = ()  # if they were asked for
    unpriced: tuple[str, ...] = ()  # models that have no price
    demo: bool = False  # some of the numbers are made up
    inputs_sha256: str = ""  # of the sums that it is made of, so that it can be made again and compared
    notices: tuple[str, ...] = ()  # what may be missing, in words
    jobs: dict[str, int] = {}  # the scrape jobs that were believed, and how many nodes each spoke for
    ignored_jobs: tuple[str, ...] = ()  # those that were not, though they have series of podgpu
    disputes: tuple[Dispute, ...] = ()

    def wasted_units(self, line: StatementLine) -> int | None:
        """What a group's waste costs, at the mean price of the time that it pays for; None if that is not known."""
        wasted, cost = line.wasted_us, line.cost_units
        if wasted == 0 and cost is not None:
            return 0
        if wasted is None or cost is None or not line.charged or self.basis == "energy":
            return None
        return round(wasted * (cost - (line.shared_units or 0)) / line.charged)

    @property
    def complete(self) -> bool:
        missing = self.unpriced or self.coverage.unseen_us or self.total.unsized_us
        return not (missing or self.notices or self.disputes)


def total_of(lines: Iterable[StatementLine]) -> StatementLine:
    """Add lines up. The cost is unknown if that of any line is."""
    all_lines = list(lines)
    costs = [line.cost_units for line in all_lines if line.cost_units is not None or line.held_us is not None]
    return StatementLine(
        kind="total",
        held_us=total_of_known(line.held_us for line in all_lines),
        unsized_us=sum(line.unsized_us for line in all_lines),
        busy_us=total_of_known(line.busy_us for line in all_lines),
        energy_mj=total_of_known(line.energy_mj for line in all_lines),
        cost_units=sum(cost for cost in costs if cost is not None) if costs and None not in costs else None,
    )
