"""What rows of a bill had of a card's busy time at least and at most: proven, and likely. Pure, and in integers.

The range of a row is that of the sum of its containers. They had at most the card's busy time less what all others had
at least, and at least that less what the others can have had at most. So a row that has all of a card is exact,
however its containers divided it.

Agents count ranges once a minute, and busy time all the time. So over a period both are of slightly different times: up
to a minute at each end. The width of a range does not depend on that. Where busy time lies beside its range, the range
is moved to it.
"""

from collections.abc import Mapping

from podgpu.cluster.report.charges import CardCounts, RowKey, row
from podgpu.cluster.report.counters import CounterScope, Measure
from podgpu.model import BusyRange

Counts = Mapping[Measure, int]
Span = tuple[int, int]
MINUTE_US = 60_000_000
_PROVEN, _LIKELY = (Measure.BUSY_LEAST, Measure.BUSY_MOST), (Measure.BUSY_LIKELY_LEAST, Measure.BUSY_LIKELY_MOST)


def busy_ranges(use: CardCounts) -> dict[RowKey, BusyRange]:
    """Return the range of each row that has busy time on a card, what is no container's too."""
    containers = [(payer, own) for (_, payer), own in use.containers.items() if Measure.BUSY in own]
    parties: list[tuple[RowKey, Counts]] = [*containers, *_nobodys(use)]
    whole = sum(own[Measure.BUSY] for _, own in parties)
    rows: dict[RowKey, BusyRange] = {}
    for payer, own in parties:
        rows[payer] = _range(own, whole).added_to(rows.get(payer))
    every = list(rows.values())
    # Of all rows together; those of one row are taken off again.
    least, most = sum(each.least for each in every), sum(each.most for each in every)
    likely = sum(each.likely_least for each in every), sum(each.likely_most for each in every)
    found = {}
    for payer, each in rows.items():
        proven = _of_sum((each.least, each.most), (least, most), whole)
        likely_least, likely_most = _of_sum((each.likely_least, each.likely_most), likely, whole)
        likely_least, likely_most = max(likely_least, proven[0]), min(likely_most, proven[1])
        is_estimate = each.is_estimate and proven[0] < proven[1]
        found[payer] = BusyRange(*proven, likely_least, likely_most, is_estimate)
    return found


def _nobodys(use: CardCounts) -> list[tuple[RowKey, Counts]]:
    """What is unattributed, whose likely range agents do not count, and what no agent booked."""
    known = {measure: amount for (scope, measure), amount in use.others.items() if scope is CounterScope.UNATTRIBUTED}
    known |= {likely: known[proven] for likely, proven in zip(_LIKELY, _PROVEN, strict=True) if proven in known}
    found: list[tuple[RowKey, Counts]] = [(row("unattributed"), known)] if Measure.BUSY in known else []
    if (unbooked := use.unbooked(Measure.BUSY) or 0) > 0:
        found.append((row("unbooked"), {Measure.BUSY: unbooked}))
    return found


def _range(own: Counts, whole: int) -> BusyRange:
    """Return the range of one that was booked. If none is counted, that is all of the card's busy time."""
    booked = own[Measure.BUSY]
    proven, likely = _counted(own, _PROVEN, booked), _counted(own, _LIKELY, booked)
    if proven is None:
        return BusyRange(0, whole, 0, whole, is_estimate=True)
    if likely is None:  # an agent before 0.2 called its likely range bounds
        likely, proven = proven, proven if proven[0] == proven[1] else (0, whole)
    # The log of context switches proves that who works had something; samples prove nothing.
    is_estimate = proven != likely or own[Measure.BUSY_LEAST] == 0 < proven[1] - proven[0]
    return BusyRange(*proven, max(likely[0], proven[0]), min(likely[1], proven[1]), is_estimate)


def _counted(own: Counts, ends: tuple[Measure, Measure], booked: int) -> Span | None:
    """Return what is counted, moved by as little as it takes to contain what is booked."""
    least, most = (own.get(end) for end in ends)
    if least is None or most is None:
        return None
    if most == 0 < booked:  # nothing is known yet about a minute that is not over
        return 0, max(booked, MINUTE_US)
    moved = max(booked - most, 0) - max(least - booked, 0)
    return least + moved, most + moved


def _of_sum(own: Span, all_rows: Span, whole: int) -> Span:
    others = all_rows[0] - own[0], all_rows[1] - own[1]
    return max(own[0], whole - others[1]), min(own[1], whole - others[0])
