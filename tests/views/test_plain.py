"""Every character that podgpu draws has a plain one, as wide as itself."""

import pytest

from podgpu.views.plain import PLAIN, plain
from podgpu.views.text import width_of

DRAWN = "▏▎▍▌▋▊▉█▁▂▃▄▅▆▇▒·✗▲▼↑↓←→–—…°"


@pytest.mark.parametrize("character", [*DRAWN, "é", "組", "☃"])
def test_a_plain_character_is_as_wide_as_what_it_stands_for(character: str) -> None:
    assert plain(character).isascii()
    assert len(plain(character)) == width_of(character)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("22% (~5–46)", "22% (~5-46)"),
        ("████▌···", "####|..."),
        ("67 °C", "67  C"),
        ("  ≥0.5", " >=0.5"),
        ("1 … 5, tab", "1 - 5, tab"),
        ("chat-6f9…-x2klm", "chat-6f9*-x2klm"),
    ],
)
def test_numbers_read_as_before(text: str, written: str) -> None:
    assert plain(text) == written
    assert len(written) == len(text)


def test_the_heights_of_a_trend_differ_from_each_other_and_from_what_is_not_known() -> None:
    assert len(set(plain("▁▂▃▄▅▆▇█·"))) == 9


def test_it_is_a_way_to_write_to_a_stream() -> None:
    assert "2.4 – 3".encode("ascii", PLAIN) == b"2.4 - 3"
