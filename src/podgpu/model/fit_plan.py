"""What would have been if cards were divided in another way: `podgpu fit --plan`."""

from msgspec import Struct

from podgpu.model.fit import FitTerms, WorkloadName

PoolKey = tuple[str, str]  # a cluster, and a model
MIG, TIME_SLICES, PORTIONS, CARDS = "mig", "timeslice", "parts", "cards"


class PlanLayout(Struct, frozen=True, kw_only=True):
    """How cards are divided."""

    kind: str  # MIG, TIME_SLICES, PORTIONS or CARDS
    text: str  # as the user wrote it
    profiles: tuple[str, ...] = ()  # with MIG: only these; all if empty
    number: int | None = None  # with time-slices: of each card; with cards: that there are
    fewer: float | None = None  # with cards: how many less, as a part of those there are


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
