"""Judges planted workloads as `podgpu fit` does, and compares the advice with what is right and with what came."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from podgpu.insight.fit.sizes import instances_of
from podgpu.insight.fit.statement import FitPeriodFacts, fit_statement
from podgpu.model.fit import (
    RELEASE,
    SHARE,
    SHRINK,
    FitAdvice,
    FitTerms,
    WantedPart,
    WorkloadName,
    WorkloadUse,
)
from tests.insight.fit.planted import DAY, JUDGED, WEEKS, Planted

Rows = dict[WorkloadName, FitAdvice]


def part_text(_kind: str, _system: str, wanted: WantedPart) -> str:
    return str(wanted.memory_bytes or "")


def advice(workloads: Sequence[Planted], first: int = 0, end: int = JUDGED, terms: FitTerms | None = None) -> Rows:
    uses = [use for planted in workloads if (use := planted.window(first, end))]
    facts = FitPeriodFacts(start=first * 60.0, end=end * 60.0, terms=terms or FitTerms())
    return {row.workload: row for row in fit_statement(uses, facts, part_text).rows}


def wrong(workloads: Sequence[Planted], rows: Rows) -> list[str]:
    """List where the advice is not the one that was planted."""
    return [
        f"{planted.use.workload}: {planted.kind} {planted.to or ''} was planted, {row.kind} {row.to} is advised"
        for planted in workloads
        for row in [rows[planted.use.workload]]
        if row.kind != planted.kind or planted.to not in (None, row.to)
    ]


@dataclass(frozen=True)
class Overrun:
    workload: WorkloadName
    needed: int
    has: int


def overruns(workloads: Sequence[Planted], rows: Rows) -> Iterator[Overrun]:
    """Find those that would not have had enough memory in the week that was held back, or that would have been used."""
    uses = {planted.use.workload: planted.use for planted in workloads}
    for name, row in rows.items():
        use = uses[name]
        if row.kind == RELEASE and max(use.series.most[JUDGED:]) > 0:
            yield Overrun(name, 1, 0)
        has = _memory(row, use)
        together = [use, *(uses[other] for other in row.together)]
        needed = max(map(sum, zip(*(each.series.memory[JUDGED:] for each in together), strict=True)))
        if has is not None and needed > has:
            yield Overrun(name, needed, has)


def _memory(row: FitAdvice, use: WorkloadUse) -> int | None:
    """Return the memory that it would have; None if that would not change."""
    if row.kind == SHARE:
        return use.card.memory_bytes
    if row.kind != SHRINK or use.held.devices > 1:
        return None
    instances = {part.name: part.memory_bytes for part in instances_of(use.card)}
    return instances[row.to] if row.to in instances else int(row.change)


def changes(workloads: Sequence[Planted], days: int = 7) -> tuple[list[str], int]:
    """Judge day after day by the two weeks before it. Return what changed without a cause, and of how many."""
    steady = [planted for planted in workloads if not planted.is_moving]
    found: list[str] = []
    before: Rows | None = None
    total = 0
    for end in range(JUDGED, min(JUDGED + days * DAY, WEEKS) + 1, DAY):
        rows = advice(steady, end - JUDGED, end)
        for name, row in rows.items() if before else ():
            total += 1
            old = before[name] if before else row
            if (old.kind, old.to, old.together) != (row.kind, row.to, row.together):
                found.append(f"day {end // DAY}: {name}: {old.kind} {old.to} became {row.kind} {row.to}")
        before = rows
    return found, total
