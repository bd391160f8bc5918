"""The list of faults is whole, and what it says about tests is true."""

from collections import Counter
from pathlib import Path

import pytest

from tests.faults.catalogue import COUNTS, ELSEWHERE, NOT_PLAYED, OPEN, PLAYED
from tests.faults.plays import PLAYS


def test_no_two_plays_have_one_name() -> None:
    names = Counter(play.id for play in PLAYS)
    assert [name for name, times in names.items() if times > 1] == []


TESTS = Path(__file__).parents[1]


def test_every_fault_is_in_one_place() -> None:
    wanted = Counter(f"{kind}{number}" for kind, most in COUNTS.items() for number in range(1, most + 1))
    assert Counter((*PLAYED, *ELSEWHERE, *NOT_PLAYED, *OPEN)) == wanted


@pytest.mark.parametrize("place", sorted(set(ELSEWHERE.values())))
def test_a_test_that_is_named_exists(place: str) -> None:
    file, _, name = place.partition("::")
    assert f"def {name}(" in (TESTS / file).read_text()
