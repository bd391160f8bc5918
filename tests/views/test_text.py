"""How wide text is on a terminal, and how it is made to fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.views.text import fitted, table_row, width_of


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 0), ("pod-0", 5), ("23 °C – …", 9), ("é", 1), ("日本", 4), ("😀", 2), ("e\u0301", 1), ("ア", 2)],
)
def test_how_many_columns_a_text_takes(text: str, width: int) -> None:
    assert width_of(text) == width


@pytest.mark.parametrize(
    ("cell", "left", "right"),
    [("ab", "ab  ", "  ab"), ("abcdef", "abc…", "abc…"), ("日本", "日本", "日本"), ("日本語", "日… ", " 日…")],
)
def test_a_cell_is_padded_or_cut_to_its_size(cell: str, left: str, right: str) -> None:
    assert (fitted(cell, 4), fitted(cell, 4, right=True)) == (left, right)


CELLS = st.text(st.sampled_from("aé°日ア😀\u0301 -"), max_size=12)


@given(cells=st.tuples(CELLS, CELLS), sizes=st.tuples(st.integers(1, 8), st.integers(1, 8)))
def test_whatever_is_in_a_row_its_columns_keep_their_places(cells: tuple[str, str], sizes: tuple[int, int]) -> None:
    row = table_row(cells, sizes, (1,))
    assert width_of(row) == sum(sizes) + 2
