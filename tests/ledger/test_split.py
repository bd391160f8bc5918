"""Integers are divided so that nothing is lost."""

from hypothesis import given
from hypothesis import strategies as st

from podgpu.ledger.shares import split, within


@given(st.integers(0, 10**15), st.dictionaries(st.text(max_size=3), st.integers(0, 10**9), max_size=9))
def test_a_split_loses_nothing_and_is_off_by_less_than_one(whole: int, weights: dict[str, int]) -> None:
    parts = split(whole, weights)
    weight = sum(weights.values())
    assert sum(parts.values()) == (whole if weight else 0)
    for key, part in parts.items():
        if weight:
            assert abs(part * weight - whole * weights[key]) < weight


def test_equal_remainders_go_by_key_and_not_by_order() -> None:
    assert split(1, {"b": 1, "a": 1}) == split(1, {"a": 1, "b": 1}) == {"a": 1, "b": 0}


def test_what_fits_is_given_and_what_does_not_is_shared() -> None:
    assert within(10, {"a": 3, "b": 4}) == ({"a": 3, "b": 4}, 3)
    assert within(10, {"a": 15, "b": 5}) == ({"a": 8, "b": 2}, 0)
