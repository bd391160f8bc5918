"""Money that adds up to the smallest unit."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.cluster.report.money import apportioned, digits_of, divided, rounded

AMOUNTS = st.lists(st.fractions(min_value=0, max_value=10**9, max_denominator=10**6), min_size=1, max_size=20)


@pytest.mark.parametrize(("currency", "digits"), [("EUR", 2), ("JPY", 0), ("KWD", 3), ("credits", 2)])
def test_a_currency_has_the_decimals_of_iso_4217(currency: str, digits: int) -> None:
    assert digits_of(currency) == digits


def test_a_half_is_rounded_up() -> None:
    assert [rounded(Fraction(each, 2)) for each in (1, 3, -1, 4)] == [1, 2, -1, 2]


def test_thirds_add_up_to_a_whole() -> None:
    assert apportioned([Fraction(100, 3)] * 3) == [34, 33, 33]


@given(AMOUNTS)
def test_parts_add_up_to_the_rounded_sum_and_lose_less_than_a_unit(amounts: list[Fraction]) -> None:
    parts = apportioned(amounts)
    assert sum(parts) == rounded(sum(amounts, Fraction(0)))
    assert all(abs(part - amount) < 1 for part, amount in zip(parts, amounts, strict=True))


def test_an_integer_is_divided_by_weight_and_evenly_if_nobody_has_any() -> None:
    assert divided(10, [3, 1, 0]) == [8, 2, 0]  # 7.5 and 2.5: of two that lose as much, the first gains
    assert divided(10, [0, 0, 0]) == [4, 3, 3]


@given(st.integers(0, 10**12), st.lists(st.integers(0, 10**12), min_size=1, max_size=20))
def test_what_is_divided_is_neither_more_nor_less_afterwards(total: int, weights: list[int]) -> None:
    parts = divided(total, weights)
    assert sum(parts) == total
    assert all(part >= 0 for part in parts)
    if any(weights):
        assert all(part == 0 for part, weight in zip(parts, weights, strict=True) if not weight)
