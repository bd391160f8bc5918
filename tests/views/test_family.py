import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.views.family import labels_text
from podgpu.views.text import MAX_BYTES, clean, line


def test_a_block_without_labels_is_empty() -> None:
    assert labels_text((), ()) == ""


def test_backslash_quote_and_newline_are_escaped() -> None:
    assert labels_text(("a", "b"), ("x\\y", 'say "hi"\nnow')) == r'{a="x\\y",b="say \"hi\"\nnow"}'


@pytest.mark.parametrize(
    ("raw", "safe"),
    [
        (b"caf\xc3\xa9", "café"),
        (b"caf\xe9", "caf\ufffd"),
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        ("bell\x07 tab\t next\x85", "bell\ufffd tab\ufffd next\ufffd"),
        ("two\nlines", "two\nlines"),
    ],
)
def test_what_cannot_be_printed_is_replaced(raw: str | bytes, safe: str) -> None:
    assert clean(raw) == safe


@pytest.mark.parametrize(("raw", "kept"), [("x" * 300, "x" * 256), ("ab" + "€" * 200, "ab" + "€" * 84)])
def test_a_long_value_ends_on_a_character_border(raw: str, kept: str) -> None:
    assert clean(raw) == kept


def test_a_label_count_that_does_not_match_is_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        labels_text(("a",), ("1", "2"))


@given(st.text(st.characters()) | st.binary())
def test_any_value_becomes_short_valid_text(raw: str | bytes) -> None:
    assert len(clean(raw).encode()) <= MAX_BYTES
    assert clean(clean(raw)) == clean(raw)
    assert "\n" not in line(raw)
