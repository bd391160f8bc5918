"""Divides the time or the energy of a GPU among those who pay for it. Pure, and in integers."""

from collections import defaultdict
from collections.abc import Mapping
from enum import StrEnum
from functools import partial

from msgspec import Struct, field

from podgpu.cluster.report.counters import CounterKey, CounterScope, Measure
from podgpu.cluster.report.money import divided

Group = tuple[str, ...]
RowKey = tuple[str, Group]  # the kind of a line, and its group
OTHER = "other"  # the kind of groups that a bill leaves out


class Basis(StrEnum):
    """What is paid for: time that was held, time that was used, the larger of both in each hour, or energy."""

    HELD = "held"
    USED = "used"
    GREATER = "greater"
    ENERGY = "energy"


def row(kind: str) -> RowKey:
    return kind, ()


class CardCounts(Struct):
    """What was counted on a card, in integers: by container, unattributed, and for the card as a whole.

    A container has several rows if its name was used again.
    """

    seen_us: int = 0
    containers: dict[tuple[Group, RowKey], dict[Measure, int]] = field(
        default_factory=partial(defaultdict, partial(defaultdict, int))
    )
    others: dict[tuple[CounterScope, Measure], int] = field(default_factory=partial(defaultdict, int))

    def add(self, counter: CounterKey, payer: RowKey | None, amount: int) -> None:
        """`payer` is the row of a container, and None for other counters."""
        if payer:
            self.containers[counter.container_key, payer][counter.measure] += amount
        else:
            self.others[counter.scope, counter.measure] += amount

    def merge(self, later: "CardCounts") -> None:
        self.seen_us += later.seen_us
        for container, more in later.containers.items():
            own = self.containers[container]
            for measure, amount in more.items():
                own[measure] += amount
        for key, amount in later.others.items():
            self.others[key] += amount

    def booked(self, measure: Measure) -> int:
        return sum(own.get(measure, 0) for own in self.containers.values())

    def unbooked(self, measure: Measure) -> int | None:
        """What the card used and no agent booked; None if it is not known what the card used."""
        scopes = (CounterScope.BOOKED, CounterScope.METER)
        known = [self.others[scope, measure] for scope in scopes if (scope, measure) in self.others]
        unattributed = self.others.get((CounterScope.UNATTRIBUTED, measure), 0)
        return max(known) - self.booked(measure) - unattributed if known else None


def charges(use: CardCounts, basis: Basis) -> dict[RowKey, int]:
    """Return what each row pays for: microseconds of the card, which add up to the time it was seen, or millijoules."""
    if basis is Basis.ENERGY:
        return _energy(use)
    unattributed = use.others.get((CounterScope.UNATTRIBUTED, Measure.BUSY), 0) if basis is Basis.USED else 0
    # Sorted, so that a microsecond that cannot be divided goes to the same container whenever the bill is made.
    wanted = {container: _wanted(use.containers[container], basis) for container in sorted(use.containers)}
    asked = [*wanted.values(), unattributed]
    # Nobody pays for more time than there was: if all want more than that, each pays for a part of what it wants.
    paid = divided(use.seen_us, asked) if sum(asked) > use.seen_us else asked
    rows: dict[RowKey, int] = defaultdict(int)
    for (_, payer), amount in zip(wanted, paid, strict=False):
        rows[payer] += amount
    left = use.seen_us - sum(paid)
    if basis is Basis.USED:
        rows[row("unattributed")] = paid[-1]
        held = use.booked(Measure.HELD)
        rows[row("idle")] = idle = min(left, max(held - use.booked(Measure.BUSY), 0))
        left -= idle
    rows[row("free")] = left
    return rows


def _wanted(own: Mapping[Measure, int], basis: Basis) -> int:
    held, busy = own.get(Measure.HELD, 0), own.get(Measure.BUSY, 0)
    return {Basis.HELD: held, Basis.USED: busy, Basis.GREATER: max(held, busy)}[basis]


def _energy(use: CardCounts) -> dict[RowKey, int]:
    rows: dict[RowKey, int] = defaultdict(int)
    for (_, payer), own in use.containers.items():
        rows[payer] += own.get(Measure.ENERGY, 0)
    rows[row("unattributed")] = use.others.get((CounterScope.UNATTRIBUTED, Measure.ENERGY), 0)
    rows[row("unbooked")] = use.unbooked(Measure.ENERGY) or 0
    rows[row("free")] = 0  # it is time alone, and costs nothing
    return rows
