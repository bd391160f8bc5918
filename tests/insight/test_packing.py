"""Packing: every demand in one place, nothing twice, and a bound that holds for every plan."""

from collections import defaultdict
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.catalog.mig_profiles import CARDS, MEDIA, MigCard, MigProfile, mig_card
from podgpu.insight.packing import (
    BLOCK,
    FIRST_FIT,
    FIRST_FIT_AMONG_NEWEST,
    MOST_LOOKS,
    NEWEST,
    Cutting,
    Packing,
    Rooms,
    pack_shares,
    pack_slices,
)
from podgpu.insight.plan.placing import MOST_TRIED, SmallestSizes, SpreadCards

CAPACITY = (141, 100, 4)
SIZES = st.tuples(st.integers(1, 141), st.integers(0, 100), st.just(1))
SHARES = st.lists(SIZES, max_size=20)
PROFILES = st.sampled_from(CARDS).flatmap(
    lambda card: st.tuples(st.just(card), st.lists(st.sampled_from(card.profiles), max_size=40))
)


@given(PROFILES)
def test_no_two_instances_are_on_the_same_slice(case: tuple[MigCard, list[MigProfile]]) -> None:
    card, demands = case
    packing = pack_slices(demands, card)
    checked(packing, len(demands))
    taken: dict[int, Cutting] = defaultdict(Cutting)
    for profile, place in zip(demands, packing.places, strict=True):
        assert place.start in profile.starts
        after = taken[place.card].with_instance(profile, place.start)
        assert after, "two instances on one slice, or with the media engines twice"
        taken[place.card] = after
    media = sum(profile.name.endswith(MEDIA) for profile in demands)
    slices = sum(profile.memory_slices for profile in demands)
    assert packing.cards >= max(media, -(-slices // card.memory_slices))


@given(SHARES)
def test_no_card_has_more_than_its_capacity(demands: list[tuple[int, int, int]]) -> None:
    packing = pack_shares(demands, CAPACITY)
    checked(packing, len(demands))
    for card in range(packing.cards):
        own = [demand for demand, place in zip(demands, packing.places, strict=True) if place.card == card]
        assert own, "a card without anything"
        assert all(sum(sizes) <= most for sizes, most in zip(zip(*own, strict=True), CAPACITY, strict=True))


def checked(packing: Packing, demands: int) -> None:
    assert len(packing.places) == demands
    assert {place.card for place in packing.places} == set(range(packing.cards))
    assert packing.least_cards <= packing.cards
    assert (packing.least_cards == 0) is (demands == 0)


@given(st.lists(st.tuples(st.integers(1, 10), st.integers(1, 10)), min_size=1, max_size=4))
def test_the_bound_of_shares_is_never_above_the_best_plan(demands: list[tuple[int, int]]) -> None:
    packing = pack_shares(demands, (10, 10))
    best = min(
        max(cards) + 1
        for cards in product(range(len(demands)), repeat=len(demands))
        if all(
            sum(demand[measure] for demand, own in zip(demands, cards, strict=True) if own == card) <= 10
            for card in set(cards)
            for measure in (0, 1)
        )
        and set(cards) == set(range(max(cards) + 1))
    )
    assert packing.least_cards <= best <= packing.cards


@pytest.mark.parametrize(
    ("sizes", "cards"),
    [
        ({"4g.71gb": 5, "3g.71gb": 5}, 5),
        ({"4g.71gb": 3, "2g.35gb": 3, "1g.18gb": 3}, 3),
        ({"3g.71gb": 1, "1g.18gb": 4}, 1),
        ({"2g.35gb": 6, "1g.18gb": 2}, 2),
        ({"7g.141gb": 2, "1g.35gb": 4}, 3),
        ({"1g.18gb+me": 3}, 3),
    ],
)
def test_known_pools_need_as_many_cards_as_a_person_finds(sizes: dict[str, int], cards: int) -> None:
    card = mig_card("NVIDIA H200")
    assert card
    demands = [profile for profile in card.profiles for _ in range(sizes.get(profile.name, 0))]
    packing = pack_slices(demands, card)
    assert (packing.cards, packing.least_cards, packing.above_least) == (cards, cards, 0.0)


def test_sizes_above_a_third_are_known_to_fit_only_twice() -> None:
    packing = pack_shares([(35,)] * 10, (100,))
    assert (packing.cards, packing.least_cards) == (5, 5)


@given(st.lists(SIZES, max_size=80))
def test_the_first_card_with_room_is_found_as_if_each_were_looked_at(demands: list[tuple[int, int, int]]) -> None:
    rooms, free = Rooms(), list[tuple[int, ...]]()
    for demand in demands:
        fitting = (card for card, room in enumerate(free) if all(map(int.__ge__, room, demand)))
        at = next(fitting, None)
        assert rooms.first(demand) == at
        if at is None:
            at = rooms.add(CAPACITY)
            free.append(CAPACITY)
        rooms.take(at, demand)
        free[at] = tuple(map(int.__sub__, free[at], demand))


def different(number: int) -> list[tuple[int, int]]:
    """Demands of which each fits one other alone, so that no block of cards can be passed over."""
    demands = [(10 * place + 1, 10 * (number - place)) for place in range(number)]
    return sorted(demands, key=max, reverse=True)


def test_the_work_for_thousands_of_different_demands_is_bounded() -> None:
    number = 6000
    rooms, capacity = Rooms(), (10 * number, 10 * number)
    for demand in different(number):
        at = rooms.first(demand)
        rooms.take(rooms.add(capacity) if at is None else at, demand)
    assert rooms.is_tired
    assert rooms.looks <= MOST_LOOKS + number * (BLOCK + 1) * (NEWEST + 1)


def test_a_plan_says_that_not_every_card_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pack_shares(different(500), (5000, 5000)).solver == FIRST_FIT
    monkeypatch.setattr("podgpu.insight.packing.MOST_LOOKS", 1000)
    packing = pack_shares(different(500), (5000, 5000))
    assert packing.solver == FIRST_FIT_AMONG_NEWEST
    checked(packing, 500)


RATIOS = st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda pair: (pair[0] / 16, pair[1] / 16))


@given(st.integers(1, 8), st.lists(RATIOS, max_size=40))
def test_the_emptiest_card_is_found_as_if_each_were_tried(cards: int, demands: list[tuple[float, float]]) -> None:
    spread, taken = SpreadCards(cards), [(0.0, 0.0)] * cards
    for first, second in demands:
        wanted = min((max(own[0] + first, own[1] + second), card) for card, own in enumerate(taken))
        assert spread.emptiest((first, second)) == wanted
        spread.take(wanted[1], (first, second))
        taken[wanted[1]] = taken[wanted[1]][0] + first, taken[wanted[1]][1] + second
    assert not spread.is_short


def test_many_cards_are_not_all_tried_for_a_demand() -> None:
    cards = 2 * MOST_TRIED
    spread = SpreadCards(cards)
    for card in range(cards):
        spread.take(card, (0.5, 0.0) if card % 2 else (0.0, 0.5))
    spread.emptiest((0.5, 0.0))
    assert spread.is_short


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9))), st.tuples(st.integers(0, 9), st.integers(0, 9)))
def test_whether_anything_fits_is_known_as_if_each_were_tried(
    sizes: list[tuple[int, int]], free: tuple[int, int]
) -> None:
    assert SmallestSizes(sizes).any_fits(free) == any(size[0] <= free[0] and size[1] <= free[1] for size in sizes)
