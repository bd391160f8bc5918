"""How workloads used what they hold of the GPUs over days, and what would fit: `podgpu fit`.

And what would have been if cards were divided in another way: `podgpu fit --plan`.
"""

from array import array
from typing import TypeAlias

from msgspec import Struct

# What to do about a workload, those that save something first.
RELEASE, SHRINK, SHARE, LEAVE, ENLARGE, UNJUDGED = "release", "smaller", "share", "leave", "larger", "unknown"
ADVICE_KINDS = (RELEASE, SHRINK, SHARE, LEAVE, ENLARGE, UNJUDGED)
# How sure an advice is.
CERTAINTIES = ("high", "medium", "low")
# What a container holds of each of its cards.
WHOLE, INSTANCE, PORTION, TIME_SLICE = "card", "instance", "portion", "time-slice"

AT_LIMIT = 0.97  # of its memory: with this much in use, a workload is at its limit
UNSEEN = -1  # in a series: nothing is known of this minute

# How a plan divides cards.
MIG, TIME_SLICES, PORTIONS, CARDS = "mig", "timeslice", "parts", "cards"

ByteSeries: TypeAlias = "array[int]"  # of type code q
RatioSeries: TypeAlias = "array[float]"  # of type code f
PoolKey = tuple[str, str]  # a cluster, and a model


class UseSeries(Struct, frozen=True, kw_only=True):
    """What a container used of one card, minute by minute; the most that any of its cards and replicas had.

    All series of a statement begin at the same time and have the same length. UNSEEN stands for a minute of which
    nothing is known. Busy time is a part of the whole card's time, on MIG too.
    """

    memory: ByteSeries  # bytes: the peak within the minute
    most: RatioSeries  # 0 to 1: busy at most, of the busiest of its cards
    least: RatioSeries  # 0 to 1: busy at least, of the least busy of its cards


class CardType(Struct, frozen=True, kw_only=True):
    """The kind of card that a workload is on."""

    model: str  # such as `NVIDIA H200`
    memory_bytes: int | None = None  # of the whole card; absent if not known


class HeldPart(Struct, frozen=True, kw_only=True):
    """What each replica of a workload holds."""

    kind: str  # WHOLE, INSTANCE, PORTION or TIME_SLICE
    devices: int = 1  # cards or instances of each replica
    ratio: float | None = None  # of each card, from 0 to 1; absent if not known
    profile: str = ""  # of an instance, such as `1g.18gb`
    memory_limit_bytes: int | None = None  # of each; absent without a limit
    system: str = ""  # the sharing system; empty if not known


class WantedPart(Struct, frozen=True, kw_only=True):
    """What each replica of a workload should ask for."""

    devices: int = 1  # cards, instances, or containers that share a card
    profile: str = ""  # of an instance
    memory_bytes: int | None = None  # of a part of a card
    core_ratio: float | None = None  # of a part of a card, from 0 to 1
    ratio: float | None = None  # the greater part of both


class WorkloadName(Struct, frozen=True, order=True):
    """A container of a workload. On two models of cards it is two workloads."""

    namespace: str
    kind: str  # such as `Deployment`; `Pod` for a pod of its own
    name: str
    container: str
    cluster: str = ""  # empty where the store has one cluster
    model: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class WorkloadUse(Struct, frozen=True, kw_only=True):
    """The evidence of one container of a workload."""

    workload: WorkloadName
    card: CardType
    held: HeldPart
    series: UseSeries
    replicas: int = 1  # pods at the end of the period
    used_devices: int | None = None  # of each replica, the most that were ever busy; absent if not known
    watched_seconds: float  # for how long it held anything within the period
    seen_ratio: float  # how much of that was seen, from 0 to 1
    busy_doubt: float | None = None  # how wide its likely busy time is, on average; absent if not known
    dram_ratio: float | None = None  # memory bandwidth of the card in use, 99th percentile; absent if unknown
    restarts: tuple[int, ...] = ()  # minutes of the series at which one of its pods or containers began anew
    nodes: tuple[str, ...] = ()  # where it ran last

    @property
    def gpus(self) -> float | None:
        """How many whole cards all replicas hold together."""
        return None if self.held.ratio is None else self.held.ratio * self.held.devices * self.replicas


class FitAdvice(Struct, frozen=True, kw_only=True):
    """What to do about a container of a workload, and why."""

    workload: WorkloadName
    kind: str  # one of ADVICE_KINDS
    to: str = ""  # what it should hold instead, such as `1g.18gb`; empty if nothing is to change
    together: tuple[WorkloadName, ...] = ()  # the others on the same card, if it is to be shared
    why: tuple[str, ...] = ()  # sentences of evidence
    certainty: str = CERTAINTIES[-1]
    peak_bytes: int | None = None  # the most memory that was seen on one of its devices
    memory_bytes: int | None = None  # that it may use there
    busy_ratio: float | None = None  # at most, at the percentile that was asked for, of a card
    gpus: float | None = None  # that it holds now
    saved_gpus: float | None = None  # below 0 if it needs more; absent if not known
    saved_per_hour: float | None = None  # in the currency; absent without a price
    change: str = ""  # lines of YAML


class FitTerms(Struct, frozen=True, kw_only=True):
    """What the user asks for."""

    headroom: float = 0.2  # memory beyond the peak, as a part of the peak
    percentile: float = 0.99  # of the minutes whose busy time must fit
    release_seconds: float = 7 * 86_400.0  # not used for so long: release


class FitStatement(Struct, frozen=True, kw_only=True):
    """The advice about all workloads of a period."""

    start: float  # seconds since 1970
    end: float  # seconds since 1970
    terms: FitTerms = FitTerms()
    rows: tuple[FitAdvice, ...] = ()  # those that save most first
    step_seconds: int = 60  # of the series
    coverage: float | None = None  # how much of the GPUs' time in the period was seen, as in a bill
    gpus: float | None = None  # held by all of them
    saved_gpus: float | None = None  # by all advice together
    saved_per_hour: float | None = None
    currency: str = ""  # empty without prices
    prices: dict[str, float] = {}  # of an hour, by model
    unpriced: tuple[str, ...] = ()  # models without a price
    demo: bool = False
    notices: tuple[str, ...] = ()


class PlanLayout(Struct, frozen=True, kw_only=True):
    """How cards are divided."""

    kind: str  # MIG, TIME_SLICES, PORTIONS or CARDS
    text: str  # as the user wrote it
    profiles: tuple[str, ...] = ()  # with MIG: only these; all if empty
    number: int | None = None  # with time-slices: of each card; with cards: that there are
    fewer: float | None = None  # with cards: how many fewer, as a part of those there are


class PoolFacts(Struct, frozen=True, kw_only=True):
    """What is known of all cards of a model."""

    cards: int | None = None  # that there are
    idle_watts: float | None = None  # of a card, the least that was measured; absent if not known
    switch_seconds: float | None = None  # between contexts, by the driver's log; absent if not known


class PlanPlace(Struct, frozen=True, kw_only=True):
    """A replica of a workload on a card of the plan."""

    workload: WorkloadName
    part: str  # what it holds there, such as `1g.18gb`
    start: int | None = None  # with MIG: its first memory slice


class PlanMinute(Struct, frozen=True, kw_only=True):
    """A minute in which a card of the plan would have been too full."""

    at: float  # seconds since 1970, when it began
    card: int  # of the pool's plan, from 0
    workloads: tuple[WorkloadName, ...]
    missing_bytes: int = 0  # memory that there is not: a workload would have failed
    busy_least: float  # of all together, 1 is the whole card
    busy_most: float
    slowdown_least: float  # of the slowest of them: how many times as long its work takes
    slowdown_most: float


class PlanPool(Struct, frozen=True, kw_only=True):
    """The cards of one model."""

    cluster: str  # empty where the store has one cluster
    model: str
    replicas: int  # that were placed
    whole: int  # of them, those that keep whole cards
    cards_now: int
    cards: int
    least_cards: int  # no plan needs fewer
    above_least: float  # by which part the plan is above that
    solver: str
    full_minutes: int  # in which memory does not suffice on some card
    slower_minutes_least: int  # in which a card certainly has more work than time
    slower_minutes_most: int  # in which it may have
    slowdown_least: float = 1.0  # in the worst minute
    slowdown_most: float = 1.0
    free_ratio: float  # of the memory of the plan's cards
    useless_ratio: float  # of that memory: free, but nothing more can be placed there
    idle_watts: float | None = None  # of the cards that are no longer needed
    saved_joules: float | None = None  # within the period, as far as idle cards take them
    saved_per_hour: float | None = None  # in the currency; absent without a price
    minutes: tuple[PlanMinute, ...] = ()  # the worst first, a limited number
    layout: tuple[tuple[PlanPlace, ...], ...] = ()  # what is on each card


class PlanStatement(Struct, frozen=True, kw_only=True):
    """A period under another layout."""

    start: float  # seconds since 1970
    end: float  # seconds since 1970
    plan: PlanLayout
    terms: FitTerms = FitTerms()
    pools: tuple[PlanPool, ...] = ()
    step_seconds: int = 60
    coverage: float | None = None
    currency: str = ""
    demo: bool = False
    notices: tuple[str, ...] = ()
