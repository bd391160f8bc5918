"""Three weeks of workloads whose right advice is known: two to judge by, and one that is held back.

Every kind of workload is made by a function below. Memory and busy time follow a pattern of a day or a week, with
noise, so that no two days are alike. All of it follows from a seed.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from msgspec.structs import replace

from podgpu.insight.fit.sizes import instances_of
from podgpu.model.fit import (
    ENLARGE,
    INSTANCE,
    LEAVE,
    PORTION,
    RELEASE,
    SHARE,
    SHRINK,
    UNJUDGED,
    UNSEEN,
    WHOLE,
    CardType,
    HeldPart,
    UseSeries,
    WorkloadName,
    WorkloadUse,
)

GIB = 1 << 30
DAY = 1440  # minutes
WEEK = 7 * DAY
WEEKS = 3 * WEEK
JUDGED = 2 * WEEK
NODES = 100
NOISE, SPIKE, RARE = 0.05, 0.05, 1e-3  # now and then there is more than ever
BUSIER = 1.1  # so much more memory some of them use in the third week

CARDS = {
    "NVIDIA H200": 141 * GIB,
    "NVIDIA H100 80GB HBM3": 80 * GIB,
    "NVIDIA A100-SXM4-80GB": 80 * GIB,
    "NVIDIA A100-SXM4-40GB": 40 * GIB,
    "NVIDIA B200": 180 * GIB,
    "NVIDIA A30": 24 * GIB,
}
NO_MIG = ("NVIDIA L40S", 45 * GIB)
Pattern = Callable[[int], float]  # from the minute to the part of the peak, without noise


@dataclass(frozen=True)
class Planted:
    """A workload of three weeks, with the right advice at the end of the second. `is_moving`: it changes by itself."""

    use: WorkloadUse
    kind: str
    to: str | None = None  # None: any
    is_moving: bool = False
    begins: int = 0

    def window(self, first: int, end: int) -> WorkloadUse | None:
        """Return the evidence of some minutes; None if it did not run then."""
        series, use = self.use.series, self.use
        first_held = max(first, self.begins)
        if first_held >= end:
            return None
        most = series.most[first:end]
        seen = sum(value >= 0 for value in most)
        held = end - first_held
        return replace(
            use,
            series=UseSeries(memory=series.memory[first:end], most=most, least=series.least[first:end]),
            watched_seconds=held * 60.0,
            seen_ratio=seen / held,
            restarts=tuple(at - first for at in use.restarts if first <= at < end),
        )


@dataclass
class Planter:
    random: Random
    noise: list[float] = field(default_factory=list)
    number: int = 0

    def __post_init__(self) -> None:
        self.noise = [
            1 + SPIKE if self.random.random() < RARE else self.random.uniform(1 - NOISE, 1) for _ in range(4 * WEEKS)
        ]

    def series(
        self,
        peak: float,
        busy: float,
        memory: Pattern,
        use: Pattern,
        *,
        doubt: float = 0.0,
        period: int = WEEK,
    ) -> UseSeries:
        at, also_at = (self.random.randrange(3 * WEEKS) for _ in range(2))
        sizes = [peak * memory(minute) for minute in range(period)] * (WEEKS // period)
        rates = [busy * use(minute) for minute in range(period)] * (WEEKS // period)
        most = array("f", map(float.__mul__, rates, self.noise[also_at : also_at + WEEKS]))
        return UseSeries(
            memory=array("q", map(int, map(float.__mul__, sizes, self.noise[at : at + WEEKS]))),
            most=most,
            least=array("f", [max(value - doubt, 0.0) for value in most]) if doubt else most[:],
        )

    def workload(
        self,
        family: str,
        model: str,
        held: HeldPart,
        series: UseSeries,
        *,
        kind: str = "Deployment",
        replicas: int = 1,
    ) -> WorkloadUse:
        self.number += 1
        name = WorkloadName(f"team-{self.number % 12}", kind, f"{family}-{self.number}", "main", "", model)
        return WorkloadUse(
            workload=name,
            card=CardType(model=model, memory_bytes=CARDS.get(model, NO_MIG[1])),
            held=held,
            series=series,
            replicas=replicas,
            used_devices=1,
            watched_seconds=0.0,
            seen_ratio=1.0,
            busy_doubt=0.0,
            nodes=(f"node-{self.number % NODES:03}",),
        )


def hide(series: UseSeries, first: int, end: int) -> None:
    series.memory[first:end] = array("q", [UNSEEN]) * (end - first)
    for bounds in (series.most, series.least):
        bounds[first:end] = array("f", [UNSEEN]) * (end - first)


WHOLE_CARD = HeldPart(kind=WHOLE, ratio=1.0)


def always(_: int) -> float:
    return 1.0


def never(_: int) -> float:
    return 0.0


def office_hours(minute: int) -> float:
    return 1.0 if 8 * 60 <= minute % DAY < 20 * 60 else 0.05


def night(minute: int) -> float:
    return 1.0 - office_hours(minute) + 0.05


def on_sundays(minute: int) -> float:
    return 1.0 if minute // DAY % 7 == 6 and 600 <= minute % DAY < 720 else 0.25


def idle(planter: Planter) -> Planted:
    """Never used, with or without a loaded model, or not used since the third day."""
    model = planter.random.choice([*CARDS, NO_MIG[0]])
    peak = planter.random.choice([0.0, 0.3, 0.8]) * CARDS.get(model, NO_MIG[1])
    series = planter.series(peak, 0.0, always, never)
    if planter.random.random() < 0.4:
        used = planter.random.randrange(DAY, 6 * DAY)
        for bounds in (series.most, series.least):
            bounds[:used] = array("f", [0.4]) * used
    kind = planter.random.choice(["Deployment", "StatefulSet", "Pod", "Job"])
    return Planted(planter.workload("idle", model, WHOLE_CARD, series, kind=kind), RELEASE, "")


def oversized(planter: Planter, memory: Pattern = office_hours, family: str = "large") -> Planted:
    """Holds a card and needs a part: a profile of which the smaller one would not do."""
    model = planter.random.choice(list(CARDS))
    parts = instances_of(CardType(model=model, memory_bytes=CARDS[model]))
    number = planter.random.randrange(len(parts))
    part = parts[number]
    below = max((other.memory_bytes for other in parts[:number] if other.memory_bytes < part.memory_bytes), default=0)
    by_memory = [other for other in parts if other.memory_bytes >= part.memory_bytes]
    peak = planter.random.uniform(max(below * 0.9, part.memory_bytes * 0.5), part.memory_bytes * 0.78)
    if below and planter.random.random() < 0.5:
        peak = below * planter.random.uniform(0.9, 0.98)  # without headroom, the smaller one would seem to do
    # The smallest with this memory that also has the cores.
    cores = planter.random.uniform(0.3, 0.9) * by_memory[0].core_ratio
    right = next(other for other in parts if other.memory_bytes >= peak * 1.2 and other.core_ratio >= cores)
    series = planter.series(peak, cores, memory, memory)
    is_busier = planter.random.random() < 0.4
    if is_busier:
        series.memory[JUDGED:] = array("q", [int(size * BUSIER) for size in series.memory[JUDGED:]])
    return Planted(planter.workload(family, model, WHOLE_CARD, series), SHRINK, right.name, is_moving=is_busier)


def seasonal(planter: Planter) -> Planted:
    """Needs its part only for two hours of each Sunday."""
    return oversized(planter, on_sundays, "season")


def portion(planter: Planter) -> Planted:
    """Holds half of a card by a sharing system, and needs a part of that."""
    model, size = NO_MIG
    peak = planter.random.randrange(2, 12) * GIB * 0.8
    cores = planter.random.choice([0.08, 0.13, 0.18])
    held = HeldPart(kind=PORTION, ratio=0.6, memory_limit_bytes=int(size * 0.6), system="parts")
    series = planter.series(peak, cores, office_hours, office_hours)
    return Planted(planter.workload("portion", model, held, series), SHRINK)


def company(planter: Planter) -> Planted:
    """Uses most of a card by day or by night. No part would do, but two of them share a card."""
    is_night = planter.number % 2 == 0
    pattern = night if is_night else office_hours
    peak = planter.random.uniform(0.3, 0.38) * NO_MIG[1]
    series = planter.series(peak, 0.8, always, pattern)
    return Planted(planter.workload("tenant", NO_MIG[0], WHOLE_CARD, series), SHARE)


def throttled(planter: Planter) -> Planted:
    """Uses all of its instance most of the time."""
    model = planter.random.choice(list(CARDS))
    parts = instances_of(CardType(model=model, memory_bytes=CARDS[model]))
    part = parts[0]
    held = HeldPart(kind=INSTANCE, ratio=part.ratio, profile=part.name, memory_limit_bytes=part.memory_bytes)
    series = planter.series(part.memory_bytes * 0.6, part.ratio, always, always)
    for bounds in (series.most, series.least):
        bounds[:] = array("f", [part.ratio]) * WEEKS
    return Planted(planter.workload("throttled", model, held, series), ENLARGE)


def out_of_memory(planter: Planter) -> Planted:
    """Its memory grows to its limit, and it begins anew, again and again."""
    model, size = NO_MIG
    limit = size // 4
    held = HeldPart(kind=PORTION, ratio=0.25, memory_limit_bytes=limit, system="parts")
    cycle = 600
    sizes = array("q", [int(limit * min(0.2 + minute / cycle, 0.999)) for minute in range(cycle)])
    series = planter.series(limit, 0.1, always, always)
    series.memory[:] = (sizes * (WEEKS // cycle + 1))[:WEEKS]
    use = planter.workload("ended", model, held, series)
    return Planted(replace(use, restarts=tuple(range(cycle, WEEKS, cycle))), ENLARGE)


def full(planter: Planter) -> Planted:
    """A whole card that is always busy: a service needs more, a job does well."""
    is_job = planter.random.random() < 0.5
    model = planter.random.choice(list(CARDS))
    series = planter.series(0.7 * CARDS[model], 1.0, always, always)
    for bounds in (series.most, series.least):
        bounds[:] = array("f", [0.99]) * WEEKS
    use = planter.workload("full", model, WHOLE_CARD, series, kind="Job" if is_job else "Deployment")
    return Planted(use, LEAVE if is_job else ENLARGE)


def fine(planter: Planter) -> Planted:
    """Uses what it holds: too much memory or busy time for a part."""
    model = planter.random.choice(list(CARDS))
    share = planter.random.uniform(0.85, 0.95)
    series = planter.series(share * CARDS[model], 0.75, always, office_hours)
    return Planted(planter.workload("fine", model, WHOLE_CARD, series), LEAVE)


def fresh(planter: Planter) -> Planted:
    """Began within the last day of the second week."""
    begins = planter.random.randrange(JUDGED - DAY + 60, JUDGED - 120)
    planted = oversized(planter, family="fresh")
    series = planted.use.series
    hide(series, 0, begins)
    return Planted(planted.use, UNJUDGED, is_moving=True, begins=begins)


def half_unseen(planter: Planter) -> Planted:
    """Its node is scraped for half of the time only."""
    planted = oversized(planter, family="unseen")
    series = planted.use.series
    for first in range(200, WEEKS, 400):
        hide(series, first, min(first + 200, WEEKS))
    return Planted(planted.use, UNJUDGED)


def doubtful(planter: Planter) -> Planted:
    """Shares a card, and the driver's samples do not show how much of it is its own."""
    model, size = NO_MIG
    held = HeldPart(kind=PORTION, ratio=0.5, memory_limit_bytes=size // 2, system="parts")
    series = planter.series(0.1 * size, 0.45, always, always, doubt=0.4)
    return Planted(replace(planter.workload("doubt", model, held, series), busy_doubt=0.4), UNJUDGED)


def growing(planter: Planter) -> Planted:
    """Its memory grows from week to week, and goes on to grow."""
    model = "NVIDIA H200"
    series = planter.series(1.0, 0.1, always, office_hours)
    first, more = planter.random.uniform(6, 9) * GIB, planter.random.uniform(1, 2) * GIB
    series.memory[:] = array("q", [int(first + more * minute / WEEK) for minute in range(WEEKS)])
    return Planted(planter.workload("growing", model, WHOLE_CARD, series), SHRINK, is_moving=True)


def several_cards(planter: Planter) -> Planted:
    """Holds several cards and uses some of them."""
    held = HeldPart(kind=WHOLE, ratio=1.0, devices=8)
    series = planter.series(60 * GIB, 0.8, always, office_hours)
    use = planter.workload("several", "NVIDIA H200", held, series, kind="PyTorchJob")
    used = planter.random.choice([1, 2, 4])
    return Planted(replace(use, used_devices=used), SHRINK, f"{used} of 8")


# How many of each there are in a hundred.
MIX: Sequence[tuple[Callable[[Planter], Planted], int]] = (
    (idle, 16),
    (oversized, 26),
    (seasonal, 6),
    (portion, 6),
    (company, 10),
    (throttled, 4),
    (out_of_memory, 3),
    (full, 5),
    (fine, 8),
    (fresh, 4),
    (half_unseen, 4),
    (doubtful, 3),
    (growing, 3),
    (several_cards, 2),
)


def planted(workloads: int, seed: int = 30) -> Iterator[Planted]:
    planter = Planter(Random(seed))
    for make, percent in MIX:
        number = max(round(workloads * percent / 100), 2)
        for _ in range(number - number % 2 if make is company else number):
            yield make(planter)


def demo_weeks() -> Iterator[Planted]:
    """Yield workloads of the demo, a value for each quarter of an hour."""
    planter = Planter(Random(8))
    plan: Sequence[tuple[str, str, str, float, float, Pattern, str]] = (
        ("research", "Job", "pretrain", 118, 0.99, always, LEAVE),
        ("assist", "Deployment", "chat", 24, 0.24, office_hours, SHRINK),
        ("lab", "StatefulSet", "notebook-5", 11, 0.0, never, RELEASE),
        ("search", "CronJob", "score-nightly", 40, 0.9, night, SHARE),
        ("search", "Deployment", "rank", 52, 0.6, office_hours, SHARE),
        ("speech", "Deployment", "asr", 12, 0.1, office_hours, SHRINK),
    )
    for namespace, kind, name, peak, busy, pattern, right in plan:
        minutes = planter.series(peak * GIB, busy, always, pattern)
        series = UseSeries(memory=minutes.memory[::15], most=minutes.most[::15], least=minutes.least[::15])
        use = planter.workload(name, "NVIDIA H200", WHOLE_CARD, series)
        yield Planted(replace(use, workload=WorkloadName(namespace, kind, name, "main", "", "NVIDIA H200")), right)
