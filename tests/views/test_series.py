"""Labels and families: one key for each series, whatever the values are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.catalog.row import Kind, Worth
from podgpu.views.exposition import Format, render
from podgpu.views.series import Family, Labels, count
from podgpu.views.text import MAX_BYTES, clean, line
from tests.views.test_exposition import PARSERS


def family() -> Family:
    return Family("a_bytes", Kind.GAUGE, "Help.", Worth.USEFUL)


def test_no_labels_make_no_text() -> None:
    assert Labels((), ()) == ""


def test_backslash_quote_and_newline_are_escaped() -> None:
    assert Labels(("a", "b"), ("x\\y", 'say "hi"\nnow')) == r'a="x\\y",b="say \"hi\"\nnow"'


def test_labels_of_equal_text_are_one_key() -> None:
    """Also those whose raw values differ, but cannot be told apart on the page."""
    bell, controls = Labels.of({"pod": "a\x07"}), Labels.of({"pod": "a\x08"})
    assert bell == controls and hash(bell) == hash(controls)
    assert bell != Labels.of({"pod": "a"})
    both = family()
    both.put(1.0, bell)
    both.put(2.0, controls)
    assert both.samples == {(bell,): 2.0}


def test_sorted_labels_do_not_depend_on_the_order_given() -> None:
    assert Labels.by_name({"b": "1", "a": "2"}) == Labels.by_name({"a": "2", "b": "1"})
    assert Labels.by_name({"b": "1", "a": "2"}) == 'a="2",b="1"'


def test_labels_give_their_pairs_back() -> None:
    assert Labels(("a", "b"), ("x", "two\nlines")).pairs() == {"a": "x", "b": "two\nlines"}


def test_an_unknown_value_makes_no_series() -> None:
    made = family()
    made.put(None, Labels.of({"pod": "a"}))
    made.add(None, Labels.of({"pod": "a"}))
    assert made.samples == {}


def test_added_values_share_a_series() -> None:
    made = family()
    for value in (1.0, 2.5, None):
        made.add(value, Labels.of({"pod": "a"}))
    assert made.samples == {(Labels.of({"pod": "a"}),): 3.5}


HOSTILE = st.text(st.characters(), max_size=4) | st.text('\\"\n{}=,\x00\ud800', max_size=4)


@given(st.lists(st.tuples(HOSTILE, HOSTILE), max_size=12))
def test_no_values_make_a_series_twice(rows: list[tuple[str, str]]) -> None:
    made = family()
    for node, pod in rows:
        made.put(1.0, Labels.of({"node": node}), Labels.of({"pod": pod}))
    parsed = PARSERS[Format.TEXT](render([made], Format.TEXT).decode())
    found = [frozenset(sample.labels.items()) for family in parsed for sample in family.samples]
    assert len(found) == len(set(found)) == count([made])
    assert {frozenset({"node": clean(node), "pod": clean(pod)}.items()) for node, pod in rows} == set(found)


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
        Labels(("a",), ("1", "2"))


@given(st.text(st.characters()) | st.binary())
def test_any_value_becomes_short_valid_text(raw: str | bytes) -> None:
    assert len(clean(raw).encode()) <= MAX_BYTES
    assert clean(clean(raw)) == clean(raw)
    assert "\n" not in line(raw)


@pytest.mark.parametrize("turn", ["\u061c", "\u200e", "\u200f", "\u202a", "\u202e", "\u2066", "\u2069"])
def test_a_turn_of_the_direction_is_made_visible(turn: str) -> None:
    """`trainer` + U+202E + `lave` would show as `trainereval`."""
    assert clean(f"trainer{turn}lave") == line(f"trainer{turn}lave") == "trainer\ufffdlave"


def test_names_of_any_script_are_left_alone() -> None:
    assert clean("größe-训练-تدريب-אימון") == "größe-训练-تدريب-אימון"
