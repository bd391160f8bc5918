"""Places what workloads need on as few cards as it can, and says how many cards no plan can do without.

Demands are placed one after the other, the largest first. The lower bounds are by weights of which no card can hold
more than 1, so they hold for every plan.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from math import ceil
from operator import ge, sub

from msgspec import Struct

from podgpu.catalog.mig_profiles import MEDIA, MigCard, MigProfile

NOTHING = Fraction(0)
FIRST_FIT = "first fit, the largest first"
BLOCK = 16  # cards that are looked at together
NEWEST = 8  # blocks
MOST_LOOKS = 2_000_000  # for one order of demands: enough for about 4,000 that are all different
FIRST_FIT_AMONG_NEWEST = f"{FIRST_FIT}, the last ones among the newest {NEWEST * BLOCK} cards only"
# For sizes above 1/2, 1/3 ... of a card. Smaller ones gain nothing.
_PARTS = range(1, 21)

Counts = tuple[int, ...]  # of each profile of a card, or of each measure of a demand


class Place(Struct, frozen=True):
    """Where a demand is placed. `start` is the first memory slice of an instance."""

    card: int
    start: int | None = None


class Packing(Struct, frozen=True, kw_only=True):
    """Places of all demands, in their order."""

    places: tuple[Place, ...]
    cards: int
    least_cards: int  # no plan needs fewer
    solver: str = FIRST_FIT

    @property
    def above_least(self) -> float:
        """How many more cards than the lower bound, as a part of it."""
        return self.cards / self.least_cards - 1 if self.least_cards else 0.0


# Makes a better plan of demands and a card's capacity, or returns the one it was given.
Improver = Callable[[Sequence[Counts], Counts, Packing], Packing]


class Cutting(Struct, frozen=True):
    """What is taken of a card that is divided into instances: memory slices as bits, and the media engines."""

    slices: int = 0
    media: bool = False

    def with_instance(self, profile: MigProfile, start: int) -> "Cutting | None":
        """Add an instance. None if it overlaps with another."""
        bits, media = (1 << profile.memory_slices) - 1 << start, profile.name.endswith(MEDIA)
        if self.slices & bits or (self.media and media):
            return None
        return Cutting(self.slices | bits, self.media or media)


def pack_slices(demands: Sequence[MigProfile], card: MigCard) -> Packing:
    """Divide whole cards as in the best plan with fractions of cards, then place the rest one by one."""
    wanted = counted(demands, card)
    bound, ways = _by_divisions(wanted, card)
    waiting = {
        profile.name: [number for number, demand in enumerate(demands) if demand.name == profile.name]
        for profile in card.profiles
    }
    work = _Slices(card)
    for way, cards in ways.items():
        for _ in range(cards):
            work.divide(way, waiting)
    for number in sorted(
        (number for own in waiting.values() for number in own), key=lambda at: (-_bulk(demands[at]), at)
    ):
        work.place(number, demands[number])
    return Packing(
        places=tuple(work.places[number] for number in range(len(demands))),
        cards=len(work.cuttings),
        least_cards=ceil(bound),
    )


class _Slices:
    """Cards in the course of being divided."""

    def __init__(self, card: MigCard) -> None:
        self._card = card
        self.cuttings: list[Cutting] = []  # what is taken of each card
        self.places: dict[int, Place] = {}  # of each demand
        self._cards: dict[Cutting, list[int]] = defaultdict(list)  # by what is taken of them

    def divide(self, way: Counts, waiting: Mapping[str, list[int]]) -> None:
        """Divide a new card in a given way, for demands that wait, as far as there are any."""
        at, taken = len(self.cuttings), Cutting()
        for profile, start in _layouts(self._card)[way]:
            if waiting[profile.name]:
                self.places[waiting[profile.name].pop()] = Place(at, start)
                taken = taken.with_instance(profile, start) or taken
        self.cuttings.append(taken)
        self._cards[taken].append(at)

    def place(self, number: int, profile: MigProfile) -> None:
        """Place a demand where those that are still to come lose least room, on a new card only if it must."""
        known = [taken for taken, cards in self._cards.items() if cards]
        options = list(self._options(profile, known)) or list(self._options(profile, [Cutting()]))
        _, _, _, start, taken, after = min(options, key=lambda option: option[:3])
        if self._cards[taken]:
            at = self._cards[taken].pop()
        else:
            at = len(self.cuttings)
            self.cuttings.append(taken)
        self.cuttings[at] = after
        self._cards[after].append(at)
        self.places[number] = Place(at, start)

    def _options(
        self, profile: MigProfile, cuttings: Iterable[Cutting]
    ) -> Iterator[tuple[float, int, int, int, Cutting, Cutting]]:
        for taken in cuttings:
            for start, after in _options(profile, taken):
                yield _lost(self._card, taken, after), -start, taken.slices, start, taken, after


def _bulk(profile: MigProfile) -> int:
    return 16 * profile.memory_slices + profile.compute_slices


def _options(profile: MigProfile, taken: Cutting) -> Iterator[tuple[int, Cutting]]:
    for start in profile.starts:
        after = taken.with_instance(profile, start)
        if after:
            yield start, after


@cache
def room_left(card: MigCard, taken: Cutting) -> Counts:
    """Return how many instances of each profile would still fit, each profile by itself."""
    return tuple(_most(profile, taken) for profile in card.profiles)


def _most(profile: MigProfile, taken: Cutting) -> int:
    number = 0
    for start in profile.starts:
        after = taken.with_instance(profile, start)
        if after:
            number, taken = number + 1, after
    return number


@cache
def _lost(card: MigCard, before: Cutting, after: Cutting) -> float:
    """Return how much room a placement costs all profiles, each in parts of a card."""
    return sum(
        (had - has) / profile.instances
        for profile, had, has in zip(card.profiles, room_left(card, before), room_left(card, after), strict=True)
    )


@cache
def _layouts(card: MigCard) -> Mapping[Counts, tuple[tuple[MigProfile, int], ...]]:
    """List the ways to fill a card with instances: how many of each profile, and where each instance begins."""
    found: dict[Counts, tuple[tuple[MigProfile, int], ...]] = {}
    seen: set[tuple[Cutting, Counts]] = set()
    to_do: list[tuple[Cutting, Counts, tuple[tuple[MigProfile, int], ...]]]
    to_do = [(Cutting(), (0,) * len(card.profiles), ())]
    while to_do:
        taken, counts, layout = to_do.pop()
        options = [
            (number, profile, start, after)
            for number, profile in enumerate(card.profiles)
            for start, after in _options(profile, taken)
        ]
        if not options:
            found.setdefault(counts, layout)
        for number, profile, start, after in options:
            more = (*counts[:number], counts[number] + 1, *counts[number + 1 :])
            if (after, more) not in seen:
                seen.add((after, more))
                to_do.append((after, more, (*layout, (profile, start))))
    return found


def counted(profiles: Iterable[MigProfile], card: MigCard) -> Counts:
    """Count the demands for each profile of a card."""
    numbers = Counter(profile.name for profile in profiles)
    return tuple(numbers[profile.name] for profile in card.profiles)


def _by_divisions(wanted: Counts, card: MigCard) -> tuple[Fraction, dict[Counts, int]]:
    """Find the best plan with fractions of cards. Return its cards, and how many whole ones it divides in which way."""
    asked = [number for number, count in enumerate(wanted) if count]
    ways: dict[Counts, Counts] = {}  # by what they have of the profiles that are asked for
    for way in sorted(_layouts(card)):
        ways.setdefault(tuple(way[number] for number in asked), way)
    best = [way for way in ways if not any(other != way and _covers(other, way) for other in ways)]
    bound, uses = largest([wanted[number] for number in asked], best)
    return bound, {ways[way]: int(use) for way, use in zip(best, uses, strict=True) if use >= 1}


def _covers(room: Sequence[int], wanted: Sequence[int]) -> bool:
    return all(map(ge, room, wanted))


def pack_shares(demands: Sequence[Counts], capacity: Counts) -> Packing:
    """Place demands of several measures, such as bytes and parts of the busy time, none above a card's capacity."""
    numbers = range(len(demands))
    parts = [parts_of(demand, capacity) for demand in demands]
    orders = (
        sorted(numbers, key=lambda number: (-max(parts[number]), number)),
        sorted(numbers, key=lambda number: (-sum(parts[number]), number)),
    )
    tried = (_first_fit(order, demands, capacity) for order in orders)
    cards_of, rooms = min(tried, key=lambda found: len(found[1]))
    return Packing(
        places=tuple(Place(card) for card in cards_of),
        cards=len(rooms),
        least_cards=least_cards_of_shares(demands, capacity),
        solver=FIRST_FIT_AMONG_NEWEST if rooms.is_tired else FIRST_FIT,
    )


def parts_of(demand: Counts, capacity: Counts) -> tuple[float, ...]:
    """Return the parts of a card that a demand takes, measure by measure."""
    return tuple(size / most for size, most in zip(demand, capacity, strict=True))


class Rooms:
    """What is free on each of many cards. In blocks, so that most cards need no look.

    After `MOST_LOOKS` only the newest blocks are looked at: thousands of different demands must not take minutes.
    """

    def __init__(self) -> None:
        self.looks = 0
        self._free: list[Counts] = []
        self._most: list[Counts] = []  # of each block, measure by measure

    def __len__(self) -> int:
        return len(self._free)

    @property
    def is_tired(self) -> bool:
        return self.looks > MOST_LOOKS

    def first(self, demand: Counts, start: int = 0) -> int | None:
        """Return the first card, from `start` on, that has room for a demand."""
        first = max(start // BLOCK, len(self._most) - NEWEST if self.is_tired else 0)
        for block in range(first, len(self._most)):
            self.looks += 1
            if _covers(self._most[block], demand):
                for card in range(max(start, block * BLOCK), min((block + 1) * BLOCK, len(self._free))):
                    self.looks += 1
                    if _covers(self._free[card], demand):
                        return card
        return None

    def add(self, room: Counts) -> int:
        card = len(self._free)
        self._free.append(room)
        if card % BLOCK:
            self._most[-1] = tuple(map(max, self._most[-1], room))
        else:
            self._most.append(room)
        return card

    def take(self, card: int, demand: Counts) -> None:
        self._free[card] = tuple(map(sub, self._free[card], demand))
        block = card // BLOCK
        self._most[block] = tuple(map(max, *self._free[block * BLOCK : (block + 1) * BLOCK], self._free[card]))


def _first_fit(order: Sequence[int], demands: Sequence[Counts], capacity: Counts) -> tuple[list[int], Rooms]:
    """Return the card of each demand, and what is left on the cards."""
    cards_of, rooms = [0] * len(demands), Rooms()
    last_card: dict[Counts, int] = {}  # of an equal demand: the cards before it had no room, and have none now
    for number in order:
        demand = demands[number]
        at = rooms.first(demand, last_card.get(demand, 0))
        if at is None:
            at = rooms.add(capacity)
        rooms.take(at, demand)
        cards_of[number] = last_card[demand] = at
    return cards_of, rooms


def least_cards_of_shares(demands: Sequence[Counts], capacity: Counts) -> int:
    """Bound by the sum of each measure, by its sizes above a half, a third and so on, and by what fits nothing else."""
    return max(
        _strangers(demands, capacity),
        *(_least_cards([demand[measure] for demand in demands], most) for measure, most in enumerate(capacity)),
    )


def _strangers(demands: Sequence[Counts], capacity: Counts) -> int:
    """Count demands of which no two fit on one card, by any of the measures. The largest are tried first.

    Each of those found is a card with the rest of it free. If there is no time to compare all, there are fewer.
    """
    numbers = Counter(demands)
    rooms, found = Rooms(), 0
    for demand in sorted(numbers, key=lambda size: (-max(parts_of(size, capacity)), size)):
        if rooms.first(demand) is None and not rooms.is_tired:
            rooms.add(tuple(map(sub, capacity, demand)))
            found += 1 if _fit(demand, demand, capacity) else numbers[demand]
    return found


def _fit(demand: Counts, other: Counts, capacity: Counts) -> bool:
    return all(own + its <= most for own, its, most in zip(demand, other, capacity, strict=True))


def _least_cards(sizes: Sequence[int], most: int) -> int:
    """Of k + 1 parts of a card, a size takes as many k-ths as it fills parts (Fekete and Schepers, 2001)."""
    bound = -(-sum(sizes) // most)
    for parts in _PARTS:
        filled = whole = 0
        for size in sizes:
            number, rest = divmod((parts + 1) * size, most)
            if rest:
                filled += number
            else:
                whole += size
        # filled / parts + whole / most, rounded up
        bound = max(bound, -(-(filled * most + whole * parts) // (parts * most)))
    return bound


def largest(gains: Sequence[int], rows: Sequence[Sequence[int]]) -> tuple[Fraction, list[Fraction]]:
    """Solve a linear program by the simplex method: the weights of at least 0 that gain most, no row above 1.

    Returns the gain, and for each row how much the gain would grow if the row might weigh 1 more. Each gain must be
    limited by a row, or there is no largest.
    """
    columns, slacks = len(gains), len(rows)
    table = [
        [*map(Fraction, row), *(Fraction(number == other) for other in range(slacks)), Fraction(1)]
        for number, row in enumerate(rows)
    ]
    costs = [*(Fraction(-gain) for gain in gains), *[NOTHING] * slacks, NOTHING]
    basis = list(range(columns, columns + slacks))
    # Bland's rule, always the first that gains, cannot run in circles.
    while (enters := next((at for at, cost in enumerate(costs[:-1]) if cost < 0), None)) is not None:
        _, _, leaves = min(
            (row[-1] / row[enters], basis[number], number) for number, row in enumerate(table) if row[enters] > 0
        )
        pivot = table[leaves][enters]
        table[leaves] = [value / pivot for value in table[leaves]]
        basis[leaves] = enters
        for row in (*table[:leaves], *table[leaves + 1 :], costs):
            factor = row[enters]
            if factor:
                row[:] = [value - factor * own for value, own in zip(row, table[leaves], strict=True)]
    return costs[-1], costs[columns:-1]
