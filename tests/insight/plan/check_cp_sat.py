"""Plans by OR-Tools' CP-SAT against those of our own: `make test-solver`."""

from random import Random

import pytest

from podgpu.cli._plan import SOLVER, improved, improver
from podgpu.insight.packing import pack_shares
from tests.insight.test_packing import checked

CAPACITY = (140, 1000)
CAPACITY_OF_HUNDRED = (100, 1000)


@pytest.mark.parametrize("seed", range(12))
def test_the_solver_needs_no_more_cards_and_never_fewer_than_the_bound(seed: int) -> None:
    random = Random(seed)
    demands = [(random.randint(5, 90), random.randint(50, 700)) for _ in range(random.randint(5, 40))]
    own = pack_shares(demands, CAPACITY)
    best = improved(demands, CAPACITY, own)
    checked(best, len(demands))
    assert own.least_cards <= best.least_cards <= best.cards <= own.cards
    assert best.cards - best.least_cards <= 1
    for card in range(best.cards):
        on_card = [demand for demand, place in zip(demands, best.places, strict=True) if place.card == card]
        assert all(sum(sizes) <= most for sizes, most in zip(zip(*on_card, strict=True), CAPACITY, strict=True))


def test_it_finds_what_the_largest_first_misses() -> None:
    demands = [(size, 1) for size in (42, 42, 36, 36, 22, 22)]
    own = pack_shares(demands, CAPACITY_OF_HUNDRED)
    best = improved(demands, CAPACITY_OF_HUNDRED, own)
    assert (own.cards, best.cards, best.solver) == (3, 2, SOLVER)
    assert improver() is improved
