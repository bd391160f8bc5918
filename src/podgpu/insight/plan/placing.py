"""Reads how a user wants cards to be divided, and places the replicas of workloads on them."""

import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import inf
from operator import add

from msgspec import Struct

from podgpu.catalog.mig_profiles import CARDS as MIG_CARDS
from podgpu.catalog.mig_profiles import MigCard, MigProfile, mig_card, profiles_of
from podgpu.errors import UserError
from podgpu.insight.fit.rules import case_of, verdict
from podgpu.insight.fit.sizes import Need, instances_of, portion_for, smallest
from podgpu.insight.packing import Counts, Cutting, Improver, Packing, Place, pack_shares, pack_slices, parts_of
from podgpu.model.fit import CARDS, MIG, PORTIONS, TIME_SLICES, UNJUDGED, CardType, FitTerms, PlanLayout, WorkloadUse

MOST_SLICES = 48  # of a card: no card has more clients
WORDS = "mig, mig:1g.18gb,3g.71gb, timeslice:4, parts, cards:80 or cards:-20%"
WHOLE_CARD = "whole card"
ROUNDED_UP = 1 + 1e-9
EMPTIEST = "the emptiest card first"
MOST_TRIED = 256  # cards that are tried for a demand
EMPTIEST_OF_SOME = f"{EMPTIEST}, of {MOST_TRIED} tried"
CORE_PARTS = 1000  # busy time is placed in thousandths of a card


class Demand(Struct, frozen=True, kw_only=True):
    """What a replica asks for. A replica on several cards is a demand for each, for the whole card."""

    use: WorkloadUse
    part: str  # for people
    size: tuple[int, ...] = ()  # memory, and what else its layout limits
    profile: MigProfile | None = None  # with MIG


class PlacedPool(Struct, frozen=True, kw_only=True):
    """`cards` has the demands on each card, each with the first memory slice of its instance."""

    cards: tuple[tuple[tuple[Demand, int | None], ...], ...]
    packing: Packing
    whole: int
    free_ratio: float
    useless_ratio: float


class PlacingPool:
    """The workloads of one model, and how its cards are divided."""

    def __init__(
        self, card: CardType, layout: PlanLayout, terms: FitTerms, step: int, improve: Improver | None = None
    ) -> None:
        self._improve = improve
        self._card = card
        self._layout = layout
        self._terms = terms
        self._step = step
        self._mig = mig_card(card.model)
        self._memory = card.memory_bytes or 1

    @property
    def _capacity(self) -> tuple[int, ...]:
        """Memory, and time-slices or busy time. A card that cannot be divided has one place."""
        limits = {TIME_SLICES: self._layout.number or 1, PORTIONS: CORE_PARTS, CARDS: CORE_PARTS}
        return self._memory, limits.get(self._layout.kind, 1)

    def placed(self, uses: Sequence[WorkloadUse], cards_now: int) -> PlacedPool:
        demands = [demand for use in uses for demand in self._demands(use)]
        if self._layout.kind == MIG and self._mig is not None:
            packing = pack_slices([demand.profile for demand in demands if demand.profile], self._mig)
        else:
            sizes = [demand.size for demand in demands]
            packing = pack_shares(sizes, self._capacity)
            packing = self._improve(sizes, self._capacity, packing) if self._improve else packing
        if self._layout.kind == CARDS:
            packing = self._spread(packing, demands, cards_now)
        cards: list[list[tuple[Demand, int | None]]] = [[] for _ in range(packing.cards)]
        for demand, place in zip(demands, packing.places, strict=True):
            cards[place.card].append((demand, place.start))
        free, useless = self._left(cards, [demand.size for demand in demands])
        return PlacedPool(
            cards=tuple(map(tuple, cards)),
            packing=packing,
            whole=sum(demand.part == WHOLE_CARD for demand in demands),
            free_ratio=free,
            useless_ratio=useless,
        )

    def _demands(self, use: WorkloadUse) -> list[Demand]:
        part = self._whole(use) if use.held.devices > 1 else self._part(use)
        return [part] * (use.replicas * use.held.devices)

    def _whole(self, use: WorkloadUse) -> Demand:
        profile = self._mig.profiles[-1] if self._mig and self._layout.kind == MIG else None
        return Demand(use=use, part=WHOLE_CARD, size=self._capacity, profile=profile)

    def _part(self, use: WorkloadUse) -> Demand:
        case = case_of(use, self._terms, self._step)
        is_judged = verdict(case).kind != UNJUDGED
        need = case.need if is_judged else self._held(use)
        if need is None or self._card.memory_bytes is None or need.memory_bytes > self._memory:
            return self._whole(use)
        if self._layout.kind == MIG:
            kept = None if is_judged else self._profile(use.held.profile)
            return Demand(use=use, part=kept.name, profile=kept) if kept else self._instance(use, need)
        if self._layout.kind == PORTIONS:
            portion = portion_for(need, self._card)
            if portion is None:
                return self._whole(use)
            size = portion.memory_bytes, round(CORE_PARTS * portion.core_ratio)
            return Demand(use=use, part=portion.name, size=size)
        if self._layout.kind == TIME_SLICES:
            return Demand(use=use, part="time-slice", size=(need.memory_bytes, 1))
        cores = min(round(CORE_PARTS * need.core_ratio), CORE_PARTS)
        return Demand(use=use, part="shared card", size=(need.memory_bytes, cores))

    def _instance(self, use: WorkloadUse, need: Need) -> Demand:
        wanted = self._layout.profiles
        parts = [part for part in instances_of(self._card) if not wanted or part.name in wanted]
        part = smallest(parts, need)
        return Demand(use=use, part=part.name, profile=self._profile(part.name)) if part else self._whole(use)

    def _profile(self, name: str) -> MigProfile | None:
        return next((profile for profile in profiles_of(self._card.model) if profile.name == name), None)

    def _held(self, use: WorkloadUse) -> Need | None:
        """A workload that cannot be judged needs what it holds."""
        ratio, limit = use.held.ratio, use.held.memory_limit_bytes
        if ratio is None:
            return None
        return Need(memory_bytes=round(ratio * self._memory) if limit is None else limit, core_ratio=ratio)

    def _spread(self, packing: Packing, demands: Sequence[Demand], cards_now: int) -> Packing:
        """Place the demands on as many cards as the layout says, even if there is not enough room.

        The largest comes first, each on the emptiest card.
        """
        wanted = self._layout.number or max(round(cards_now * (1 - (self._layout.fewer or 0.0))), 1)
        cards = min(wanted, len(demands))  # others would stay empty
        parts = [parts_of(demand.size, self._capacity) for demand in demands]
        spread, places = SpreadCards(cards), {}
        for number in sorted(range(len(demands)), key=lambda at: (-max(parts[at]), at)):
            fullness, at = spread.emptiest(parts[number])
            if fullness > ROUNDED_UP and packing.cards <= cards:
                return packing
            spread.take(at, parts[number])
            places[number] = at
        numbers = {card: number for number, card in enumerate(sorted(set(places.values())))}
        return Packing(
            places=tuple(Place(numbers[places[number]]) for number in range(len(demands))),
            cards=len(numbers),
            least_cards=packing.least_cards,
            solver=EMPTIEST_OF_SOME if spread.is_short else EMPTIEST,
        )

    def _left(
        self, cards: Sequence[Sequence[tuple[Demand, int | None]]], sizes: Sequence[Counts]
    ) -> tuple[float, float]:
        """Return which part of the cards' memory is free, and which of it is of no use to anything smaller."""
        if not cards:
            return 0.0, 0.0
        smallest = SmallestSizes(sizes)
        left = [self._left_of_card(card, smallest) for card in cards]
        return sum(free for free, _ in left) / len(cards), sum(useless for _, useless in left) / len(cards)

    def _left_of_card(
        self, card: Sequence[tuple[Demand, int | None]], smallest: "SmallestSizes"
    ) -> tuple[float, float]:
        if self._layout.kind == MIG and self._mig:
            return self._left_of_slices(card, self._mig)
        free = [
            most - sum(sizes)
            for most, sizes in zip(self._capacity, zip(*(demand.size for demand, _ in card), strict=True), strict=True)
        ]
        memory = max(free[0], 0) / self._memory
        return memory, 0.0 if smallest.any_fits(free) else memory

    def _left_of_slices(self, card: Sequence[tuple[Demand, int | None]], mig: MigCard) -> tuple[float, float]:
        taken = Cutting()
        for demand, start in card:
            if demand.profile and start is not None:
                taken = taken.with_instance(demand.profile, start) or taken
        wanted, usable = self._layout.profiles, taken.slices
        for profile in mig.profiles:
            for start in profile.starts if not wanted or profile.name in wanted else ():
                after = taken.with_instance(profile, start)
                usable |= after.slices if after else 0
        slices = mig.memory_slices
        return 1 - taken.slices.bit_count() / slices, 1 - usable.bit_count() / slices


class SpreadCards:
    """How full each card is. The emptiest are tried first, until no other can be better."""

    def __init__(self, cards: int) -> None:
        self._taken: dict[int, tuple[float, ...]] = {}  # those before the first empty one
        self._cards = cards
        self._by_fullness: list[tuple[float, int]] = []
        self.is_short = False  # true if cards were left out that might have been better

    def emptiest(self, parts: Sequence[float]) -> tuple[float, int]:
        """Return how full the best card for a demand would be, by what it has least room for, and its number."""
        first_empty = len(self._taken)
        best = (max(parts), first_empty) if first_empty < self._cards else (inf, -1)
        least = min(parts)
        for tried, (fullness, card) in enumerate(self._by_fullness):
            if fullness + least > best[0]:
                break
            if tried == MOST_TRIED:
                self.is_short = True
                break
            best = min(best, (_fullness(self._taken[card], parts), card))
        return best

    def take(self, card: int, parts: Sequence[float]) -> None:
        before = self._taken.get(card)
        if before is not None:
            del self._by_fullness[bisect_left(self._by_fullness, (max(before), card))]
        self._taken[card] = tuple(parts) if before is None else tuple(map(add, before, parts))
        insort(self._by_fullness, (max(self._taken[card]), card))


class SmallestSizes:
    """Whether any of many demands fits into what is left of a card, without a look at each of them."""

    def __init__(self, sizes: Iterable[Counts]) -> None:
        known = sorted(set(filter(None, sizes)))
        self._memory = [memory for memory, _ in known]
        self._least = list(accumulate((other for _, other in known), min))  # of those that need no more memory

    def any_fits(self, free: Sequence[int]) -> bool:
        memory, other = free
        number = bisect_right(self._memory, memory)
        return number > 0 and self._least[number - 1] <= other


def _fullness(taken: Sequence[float], more: Sequence[float]) -> float:
    """Return how full a card would be, by what it has least room for. 1 is full."""
    return max(own + its for own, its in zip(taken, more, strict=True))


def layout_of(text: str) -> PlanLayout:
    """Parse the value of `--plan`."""
    kind, _, rest = text.strip().partition(":")
    if kind == MIG:
        return _mig(text, rest)
    if kind == PORTIONS and not rest:
        return PlanLayout(kind=kind, text=text)
    number = int(rest) if re.fullmatch("[0-9]{1,9}", rest) else 0
    if (kind == TIME_SLICES and 2 <= number <= MOST_SLICES) or (kind == CARDS and number):
        return PlanLayout(kind=kind, text=text, number=number)
    fewer = re.fullmatch(r"-(\d+(?:\.\d+)?)%", rest)
    if kind == CARDS and fewer and 0 < float(fewer[1]) < 100:
        return PlanLayout(kind=kind, text=text, fewer=float(fewer[1]) / 100)
    raise UserError(f"--plan={text} is no layout; give {WORDS}")


def _mig(text: str, rest: str) -> PlanLayout:
    names = tuple(name for name in re.split(r"[,\s]+", rest) if name)
    known = {profile.name for card in MIG_CARDS for profile in card.profiles}
    unknown = next((name for name in names if name not in known), None)
    if unknown:
        raise UserError(f"--plan={text}: no card has a MIG profile {unknown}; give names such as 1g.18gb")
    return PlanLayout(kind=MIG, text=text, profiles=names)
