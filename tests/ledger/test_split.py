from hypothesis import given
from hypothesis import strategies as st

from podgpu.ledger.split import split


@given(st.integers(0, 10**15), st.dictionaries(st.text(max_size=3), st.integers(0, 10**9), max_size=9))
def test_a_split_loses_nothing_and_is_off_by_less_than_one(whole: int, weights: dict[str, int]) -> None:
    parts = split(whole, weights)
    weight = sum(weights.values())
    assert sum(parts.values()) == (whole if weight else 0)
    for key, part in parts.items():
        if weight:
            assert abs(part * weight - whole * weights[key]) < weight
