"""Makes the statement: a row for each workload, those that save most first.

Workloads fit together on one card if their memory peaks do, side by side, and their busy time does, minute by minute.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from math import ceil

from msgspec import Struct

from podgpu.insight.fit.rules import DAY, Case, Verdict, case_of, evidence, verdict
from podgpu.insight.fit.sizes import memory_size, percentile, summed
from podgpu.model.fit import (
    ADVICE_KINDS,
    CERTAINTIES,
    LEAVE,
    PORTION,
    RELEASE,
    SHARE,
    TIME_SLICE,
    UNJUDGED,
    WHOLE,
    FitAdvice,
    FitStatement,
    FitTerms,
    WantedPart,
    WorkloadName,
    WorkloadUse,
)
from podgpu.model.insight import Prices
from podgpu.model.kube import total_of_known

# Writes lines of YAML: by the kind of part, the sharing system if that is known, and what is wanted.
PartWriter = Callable[[str, str, WantedPart], str]

MOST_TOGETHER = 4
MEMORY_STEP = 1 / 32  # of a card: needs are rounded up, so that the same groups are found every day
MOST_BUSY = 0.5  # on average: a workload that uses more leaves no room for others
FULL_CARD = 0.95  # busy time of all together, at the percentile that was asked for
STEPS_OF_A_BLOCK = 60
HIGH, MEDIUM, LOW = CERTAINTIES
# How long it must have been watched, how much of that seen, and how wide its likely busy time may be.
_SURE = ((HIGH, 7 * DAY, 0.95, 0.05), (MEDIUM, 3 * DAY, 0.8, 0.15))
_SCALED = ("Deployment", "StatefulSet", "ReplicaSet", "LeaderWorkerSet", "RayService")
_SUSPENDED = ("Job", "CronJob", "JobSet")


class FitPeriodFacts(Struct, frozen=True, kw_only=True):
    """The period of the evidence, its namespace if it is not of all, and the terms and prices to judge it by."""

    start: float
    end: float
    namespace: str | None = None
    step: int = 60
    terms: FitTerms = FitTerms()
    prices: Prices | None = None
    coverage: float | None = None  # how much of the GPUs' time in the period was seen; absent if not known
    demo: bool = False
    notices: tuple[str, ...] = ()


def fit_statement(uses: Sequence[WorkloadUse], facts: FitPeriodFacts, write: PartWriter) -> FitStatement:
    # The sharing system by which the workloads of each cluster hold parts of cards.
    parted = [use for use in uses if use.held.kind == PORTION and use.held.system]
    portions = {use.workload.cluster: use.held.system for use in parted}
    cases = [case_of(use, facts.terms, facts.step, portions.get(use.workload.cluster, "")) for use in uses]
    verdicts = {case.use.workload: verdict(case) for case in cases}
    left = [case for case in cases if verdicts[case.use.workload].kind == LEAVE]
    groups = {name: group for group in sharing_groups(left) for name in group}
    prices = facts.prices.at(facts.end) if facts.prices else None
    rows = [_row(case, verdicts[case.use.workload], groups.get(case.use.workload, ()), prices, write) for case in cases]
    models = sorted({use.card.model for use in uses})
    known = {model: prices.of(model) for model in models} if prices else {}
    return FitStatement(
        start=facts.start,
        end=facts.end,
        terms=facts.terms,
        rows=tuple(sorted(rows, key=_rank)),
        step_seconds=facts.step,
        coverage=facts.coverage,
        gpus=total_of_known(row.gpus for row in rows),
        saved_gpus=total_of_known(row.saved_gpus for row in rows if (row.saved_gpus or 0.0) > 0),
        saved_per_hour=total_of_known(row.saved_per_hour for row in rows if (row.saved_per_hour or 0.0) > 0),
        currency=prices.currency if prices else "",
        prices={model: price for model, price in known.items() if price is not None},
        unpriced=tuple(model for model, price in known.items() if price is None),
        demo=facts.demo,
        notices=facts.notices,
    )


def _shared(number: int) -> Verdict:
    why = "Their memory peaks fit side by side, and so does their busy time, minute by minute."
    wanted = WantedPart(devices=number)
    return Verdict(kind=SHARE, to=f"1/{number} card", ratio=1 / number, why=why, wanted=wanted, part_kind=TIME_SLICE)


def _row(
    case: Case, judged: Verdict, group: Sequence[WorkloadName], prices: Prices | None, write: PartWriter
) -> FitAdvice:
    """`group` has the workloads that would fit on one card, this one among them; empty if there are no others."""
    use, found = case.use, _shared(len(group)) if group else judged
    price = prices.of(use.card.model) if prices else None
    saved = _saved(use, found)
    return FitAdvice(
        workload=use.workload,
        kind=found.kind,
        to=found.to,
        together=tuple(name for name in group if name != use.workload),
        why=(found.why, *evidence(case)),
        certainty=LOW if found.kind == UNJUDGED else _certainty(use),
        peak_bytes=case.figures.peak_bytes,
        memory_bytes=memory_size(use),
        busy_ratio=case.figures.busy,
        gpus=use.gpus,
        saved_gpus=saved,
        saved_per_hour=None if saved is None or price is None else saved * price,
        change=_change(use, found, case.portions, write),
    )


def _saved(use: WorkloadUse, found: Verdict) -> float | None:
    if found.ratio is None or use.gpus is None:
        return 0.0 if found.kind == LEAVE else None
    devices = use.held.devices if found.devices is None else found.devices
    return use.gpus - found.ratio * devices * use.replicas


def _certainty(use: WorkloadUse) -> str:
    """Without a likely range nothing says how sure the busy time is."""
    if use.busy_doubt is None:
        return LOW
    for name, watched, seen, doubt in _SURE:
        if use.watched_seconds >= watched and use.seen_ratio >= seen and use.busy_doubt <= doubt:
            return name
    return LOW


def _change(use: WorkloadUse, found: Verdict, portions: str, write: PartWriter) -> str:
    if found.kind == RELEASE:
        if use.workload.kind in _SCALED:
            return "replicas: 0"
        return "suspend: true" if use.workload.kind in _SUSPENDED else f"# delete {use.workload.kind} {use.workload}"
    if found.wanted is None:
        return ""
    system = use.held.system or portions if found.part_kind == PORTION else ""
    return write(found.part_kind, system, found.wanted)


def _rank(row: FitAdvice) -> tuple[float, float, int, WorkloadName]:
    return -(row.saved_per_hour or 0.0), -(row.saved_gpus or 0.0), ADVICE_KINDS.index(row.kind), row.workload


class _Candidate(Struct, frozen=True):
    case: Case
    steps: int  # of memory, in MEMORY_STEP
    peaks: "array[float]"  # the most of each block, for a quick look


class _SharingGroup(Struct):
    members: list[_Candidate]
    busy: "array[float]"
    peaks: "array[float]"

    @property
    def steps(self) -> int:
        return sum(member.steps for member in self.members)


def sharing_groups(cases: Sequence[Case]) -> Iterator[tuple[WorkloadName, ...]]:
    """Yield the groups of two and more that fit on one card, among workloads that hold a whole card alone."""
    candidates = sorted(filter(None, map(_candidate, cases)), key=_order)
    for _, alike in groupby(candidates, key=lambda candidate: _pool(candidate.case)):
        groups: list[_SharingGroup] = []
        for candidate in alike:
            most = candidate.case.use.series.most
            group = next((group for group in groups if _has_room(group, candidate)), None)
            if group is None:
                groups.append(_SharingGroup([candidate], array("f", summed([most])), candidate.peaks))
            else:
                group.members.append(candidate)
                group.busy = array("f", summed([group.busy, most]))
                group.peaks = array("f", map(float.__add__, group.peaks, candidate.peaks))
        for group in groups:
            if len(group.members) > 1:
                yield tuple(member.case.use.workload for member in group.members)


def _order(candidate: _Candidate) -> tuple[tuple[str, str], int, WorkloadName]:
    return _pool(candidate.case), -candidate.steps, candidate.case.use.workload


def _pool(case: Case) -> tuple[str, str]:
    return case.use.workload.cluster, case.use.card.model


def _candidate(case: Case) -> _Candidate | None:
    use, need = case.use, case.need
    is_alone = use.held.kind == WHOLE and use.held.devices == 1 and use.replicas == 1
    if not is_alone or need is None or not use.card.memory_bytes or (case.figures.mean_most or 0.0) > MOST_BUSY:
        return None
    most = use.series.most
    blocks = range(0, len(most), STEPS_OF_A_BLOCK)
    peaks = array("f", (max(0.0, *most[at : at + STEPS_OF_A_BLOCK]) for at in blocks))
    return _Candidate(case, ceil(need.memory_bytes / use.card.memory_bytes / MEMORY_STEP), peaks)


def _has_room(group: _SharingGroup, candidate: _Candidate) -> bool:
    if len(group.members) >= MOST_TOGETHER or (group.steps + candidate.steps) * MEMORY_STEP > 1:
        return False
    if max(map(float.__add__, group.peaks, candidate.peaks)) <= FULL_CARD:
        return True
    busy = summed([group.busy, candidate.case.use.series.most])
    return percentile(busy, candidate.case.terms.percentile) <= FULL_CARD
