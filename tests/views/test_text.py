import pytest

from podgpu.views.text import clean, line


@pytest.mark.parametrize("turn", ["\u061c", "\u200e", "\u200f", "\u202a", "\u202e", "\u2066", "\u2069"])
def test_a_turn_of_the_direction_is_made_visible(turn: str) -> None:
    """`trainer` + U+202E + `lave` would show as `trainereval`."""
    assert clean(f"trainer{turn}lave") == line(f"trainer{turn}lave") == "trainer\ufffdlave"


def test_names_of_any_script_are_left_alone() -> None:
    assert clean("größe-训练-تدريب-אימון") == "größe-训练-تدريب-אימון"
