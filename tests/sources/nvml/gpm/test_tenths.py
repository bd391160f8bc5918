"""Which tenth of a second a glimpse is about: a card whose busy time is known, and an answer that comes late."""

import random

import pytest

from podgpu.model import BusyWindow
from podgpu.sources.nvml.gpm.tenths import AHEAD, TENTH, Glimpse, Tenths

BEGIN = 1_800_000_000_000_000_000
MS = 1_000_000


class Card:
    """Busy in each tenth as chance will have it, 0 to 1. Tenth `n` ends at BEGIN + n * TENTH."""

    def __init__(self, tenths: int, *, even: float | None = None) -> None:
        chance = random.Random(3)
        self.busy = [chance.random() if even is None else even for _ in range(tenths)]

    def windows(self, first: int, last: int, *, off: float = 0.0) -> list[BusyWindow]:
        """The driver's windows that end with these tenths."""
        return [
            BusyWindow(
                BEGIN + (end - 2) * TENTH + AHEAD,
                BEGIN + end * TENTH + AHEAD,
                round(((self.busy[end - 1] + self.busy[end]) / 2 + off) * 2 * TENTH),
            )
            for end in range(first + first % 2, last, 2)
        ]

    def glimpses(self, first: int, last: int, delay: int) -> list[Glimpse]:
        """Questions in the middle between two answers, the answers being about a tenth that ended before."""
        asked = [BEGIN + number * TENTH + delay + TENTH // 2 for number in range(first - 1, last)]
        return [
            Glimpse(before, after, self.busy[number])
            for number, before, after in zip(range(first, last), asked, asked[1:], strict=False)
        ]

    def exact(self, windows: tuple[BusyWindow, ...]) -> list[BusyWindow]:
        """Those that are tenths, and right."""
        return [
            one
            for one in windows
            if one.end_ns - one.begin_ns == TENTH
            and one.busy_ns == round(self.busy[(one.end_ns - BEGIN) // TENTH] * TENTH)
        ]


@pytest.mark.parametrize("delay", [0, 35 * MS, 80 * MS])
def test_every_window_is_cut_in_its_two_tenths_whatever_the_delay(delay: int) -> None:
    card, tenths = Card(60), Tenths()
    found = tenths.cut(card.windows(10, 50), card.glimpses(1, 56, delay))
    assert len(found) == 40
    assert card.exact(found) == list(found)


def test_a_delay_that_drifts_is_followed() -> None:
    card, tenths = Card(410), Tenths()
    found: list[BusyWindow] = []
    for second in range(1, 40):
        first, last = 10 * second, 10 * second + 10
        found += tenths.cut(card.windows(first, last), card.glimpses(first, last, 2 * second * MS))
    exact = card.exact(tuple(found))
    assert len(exact) > 0.9 * 2 * 5 * 39
    assert all(one in exact for one in found if one.end_ns - one.begin_ns == TENTH)


def test_the_newest_window_waits_for_its_tenths_but_only_once() -> None:
    card, tenths = Card(60), Tenths()
    first = tenths.cut(card.windows(6, 30), card.glimpses(1, 28, 0))
    assert len(first) == 22  # the last of twelve waits
    second = tenths.cut(card.windows(30, 40), card.glimpses(28, 42, 0))
    assert [one.begin_ns for one in second] == sorted(one.begin_ns for one in second)
    assert card.exact(second) == list(second)
    tenths.cut(card.windows(40, 50), card.glimpses(42, 44, 0))
    late = tenths.cut([], card.glimpses(44, 45, 0))
    assert [one for one in late if one.end_ns - one.begin_ns > TENTH] == card.windows(46, 50)  # for good


def test_without_glimpses_the_windows_are_the_drivers() -> None:
    card, tenths = Card(60), Tenths()
    windows = card.windows(10, 50)
    assert tenths.cut(windows, []) == tuple(windows)


def test_a_window_that_fits_no_two_tenths_stays_whole() -> None:
    card, tenths = Card(60, even=0.5), Tenths()
    windows = card.windows(10, 40)
    odd = card.windows(40, 44, off=0.2)
    found = tenths.cut([*windows, *odd], card.glimpses(1, 50, 0))
    assert [one for one in found if one.end_ns - one.begin_ns > TENTH] == odd


def test_an_answer_about_two_tenths_cuts_no_window() -> None:
    card, tenths = Card(60, even=0.5), Tenths()
    glimpses = card.glimpses(1, 50, 0)
    missed = Glimpse(glimpses[20].begin_ns, glimpses[21].end_ns, 0.5)
    found = tenths.cut(card.windows(10, 40), [*glimpses[:20], missed, *glimpses[22:]])
    assert sum(one.end_ns - one.begin_ns > TENTH for one in found) in (1, 2)


def test_a_clock_that_was_set_back_starts_anew() -> None:
    card, tenths = Card(60), Tenths()
    tenths.cut(card.windows(30, 50), card.glimpses(21, 56, 0))
    found = tenths.cut(card.windows(2, 26), card.glimpses(1, 28, 0))
    assert card.exact(found)


def test_what_waits_when_the_clock_is_set_back_far_stays_whole() -> None:
    card, tenths = Card(60), Tenths()
    waiting = card.windows(52, 56)
    tenths.cut(card.windows(30, 52) + waiting, card.glimpses(21, 52, 0))
    hour = 3_600 * 10 * TENTH
    found = tenths.cut(
        [BusyWindow(one.begin_ns - hour, one.end_ns - hour, one.busy_ns) for one in card.windows(2, 26)],
        [Glimpse(one.begin_ns - hour, one.end_ns - hour, one.busy) for one in card.glimpses(1, 28, 0)],
    )
    assert list(found[:2]) == waiting
    assert len(found) > 20


def test_a_clock_that_is_set_back_between_two_glimpses_of_a_cycle_starts_anew() -> None:
    card, tenths = Card(60), Tenths()
    hour = 3_600 * 10 * TENTH
    before = [Glimpse(one.begin_ns + hour, one.end_ns + hour, one.busy) for one in card.glimpses(1, 28, 0)]
    tenths.cut([], [*before, *card.glimpses(1, 3, 0)])
    found = tenths.cut(card.windows(2, 26), card.glimpses(3, 28, 0))
    assert card.exact(found)
    assert all(one.end_ns < BEGIN + hour for one in tenths._glimpses)


def test_nothing_is_kept_for_ever() -> None:
    card, tenths = Card(1000), Tenths()
    for second in range(1, 99):
        first, last = 10 * second, 10 * second + 10
        tenths.cut(card.windows(first, last), card.glimpses(first, last, 0))
    assert len(tenths._windows) <= 25
    assert len(tenths._glimpses) <= 45
