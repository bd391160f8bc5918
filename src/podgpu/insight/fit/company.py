"""Which workloads would fit together on one card: memory peaks side by side, busy time added up minute by minute."""

from array import array
from collections.abc import Iterator, Sequence
from itertools import groupby
from math import ceil

from msgspec import Struct, field

from podgpu.insight.fit.figures import percentile
from podgpu.insight.fit.rules import Case
from podgpu.model.fit import WHOLE, WorkloadName

MOST_TOGETHER = 4
MEMORY_STEP = 1 / 32  # of a card: needs are rounded up, so that the same groups are found every day
MOST_BUSY = 0.5  # on average: who uses more of a card has no room for others
FULL_CARD = 0.95  # busy time of all together, at the percentile that was asked for
STEPS_OF_A_BLOCK = 60


class _Candidate(Struct, frozen=True):
    case: Case
    steps: int  # of memory, in MEMORY_STEP
    peaks: "array[float]"  # the most of each block, for a quick look


class _Company(Struct):
    members: list[_Candidate]
    busy: "array[float]"
    peaks: "array[float]" = field(default_factory=lambda: array("f"))

    @property
    def steps(self) -> int:
        return sum(member.steps for member in self.members)


def companies(cases: Sequence[Case]) -> Iterator[tuple[WorkloadName, ...]]:
    """Yield the groups of two and more, among workloads that hold a whole card alone."""
    candidates = sorted(filter(None, map(_candidate, cases)), key=_order)
    for _, alike in groupby(candidates, key=lambda each: _pool(each.case)):
        found: list[_Company] = []
        for each in alike:
            home = next((company for company in found if _has_room(company, each)), None)
            if home is None:
                busy = array("f", [max(value, 0.0) for value in each.case.use.series.most])
                found.append(_Company([each], busy, each.peaks[:]))
            else:
                home.members.append(each)
                home.busy = array("f", _sum(home.busy, each.case.use.series.most))
                home.peaks = array("f", map(float.__add__, home.peaks, each.peaks))
        for company in found:
            if len(company.members) > 1:
                yield tuple(member.case.use.workload for member in company.members)


def _order(each: _Candidate) -> tuple[tuple[str, str], int, WorkloadName]:
    return _pool(each.case), -each.steps, each.case.use.workload


def _pool(case: Case) -> tuple[str, str]:
    return case.use.workload.cluster, case.use.card.model


def _candidate(case: Case) -> _Candidate | None:
    use, need = case.use, case.need
    is_alone = use.held.kind == WHOLE and use.held.devices == 1 and use.replicas == 1
    if (
        not is_alone
        or need is None
        or not use.card.memory_bytes
        or (case.figures.mean_most or 0.0) > MOST_BUSY
    ):
        return None
    most = use.series.most
    blocks = range(0, len(most), STEPS_OF_A_BLOCK)
    peaks = array("f", (max(0.0, *most[at : at + STEPS_OF_A_BLOCK]) for at in blocks))
    return _Candidate(case, ceil(need.memory_bytes / use.card.memory_bytes / MEMORY_STEP), peaks)


def _has_room(company: _Company, each: _Candidate) -> bool:
    if len(company.members) >= MOST_TOGETHER or (company.steps + each.steps) * MEMORY_STEP > 1:
        return False
    if max(map(float.__add__, company.peaks, each.peaks)) <= FULL_CARD:
        return True
    busy = _sum(company.busy, each.case.use.series.most)
    return percentile(busy, each.case.terms.percentile) <= FULL_CARD


def _sum(busy: Sequence[float], most: Sequence[float]) -> list[float]:
    """What was not seen of one of them counts as no use: its coverage says how much that may be."""
    return [mine + (theirs if theirs > 0 else 0.0) for mine, theirs in zip(busy, most, strict=True)]
