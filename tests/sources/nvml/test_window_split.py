"""Which tenth of a second a busy sample is about: a card whose busy time is known, and an answer that comes late."""

import random

import pytest

from podgpu.model import BusyWindow
from podgpu.sources.nvml.window_split import AHEAD, TENTH, BusySample, WindowSplitter

BEGIN = 1_800_000_000_000_000_000
MS = 1_000_000


class Card:
    """Busy in each tenth as chance will have it, 0 to 1. Tenth `n` ends at BEGIN + n * TENTH."""

    def __init__(self, splitter: int, *, even: float | None = None) -> None:
        chance = random.Random(3)
        self.busy = [chance.random() if even is None else even for _ in range(splitter)]

    def windows(self, first: int, last: int, *, off: float = 0.0) -> list[BusyWindow]:
        """The driver's windows that end with these splitter."""
        return [
            BusyWindow(
                BEGIN + (end - 2) * TENTH + AHEAD,
                BEGIN + end * TENTH + AHEAD,
                round(((self.busy[end - 1] + self.busy[end]) / 2 + off) * 2 * TENTH),
            )
            for end in range(first + first % 2, last, 2)
        ]

    def samples(self, first: int, last: int, delay: int) -> list[BusySample]:
        """Questions in the middle between two answers, the answers being about a tenth that ended before."""
        asked = [BEGIN + number * TENTH + delay + TENTH // 2 for number in range(first - 1, last)]
        return [
            BusySample(before, after, self.busy[number])
            for number, before, after in zip(range(first, last), asked, asked[1:], strict=False)
        ]

    def exact(self, windows: tuple[BusyWindow, ...]) -> list[BusyWindow]:
        """Those that are splitter, and right."""
        return [
            window
            for window in windows
            if window.end_ns - window.begin_ns == TENTH
            and window.busy_ns == round(self.busy[(window.end_ns - BEGIN) // TENTH] * TENTH)
        ]


@pytest.mark.parametrize("delay", [0, 35 * MS, 80 * MS])
def test_every_window_is_cut_in_its_two_tenths_whatever_the_delay(delay: int) -> None:
    card, splitter = Card(60), WindowSplitter()
    found = splitter.split(card.windows(10, 50), card.samples(1, 56, delay))
    assert len(found) == 40
    assert card.exact(found) == list(found)


def test_a_delay_that_drifts_is_followed() -> None:
    card, splitter = Card(410), WindowSplitter()
    found: list[BusyWindow] = []
    for second in range(1, 40):
        first, last = 10 * second, 10 * second + 10
        found += splitter.split(card.windows(first, last), card.samples(first, last, 2 * second * MS))
    exact = card.exact(tuple(found))
    assert len(exact) > 0.9 * 2 * 5 * 39
    assert all(window in exact for window in found if window.end_ns - window.begin_ns == TENTH)


def test_the_newest_window_waits_for_its_tenths_but_only_once() -> None:
    card, splitter = Card(60), WindowSplitter()
    first = splitter.split(card.windows(6, 30), card.samples(1, 28, 0))
    assert len(first) == 22  # the last of twelve waits
    second = splitter.split(card.windows(30, 40), card.samples(28, 42, 0))
    assert [window.begin_ns for window in second] == sorted(window.begin_ns for window in second)
    assert card.exact(second) == list(second)
    splitter.split(card.windows(40, 50), card.samples(42, 44, 0))
    late = splitter.split([], card.samples(44, 45, 0))
    assert [window for window in late if window.end_ns - window.begin_ns > TENTH] == card.windows(46, 50)  # for good


def test_without_samples_the_windows_are_the_drivers() -> None:
    card, splitter = Card(60), WindowSplitter()
    windows = card.windows(10, 50)
    assert splitter.split(windows, []) == tuple(windows)


def test_a_window_that_fits_no_two_tenths_stays_whole() -> None:
    card, splitter = Card(60, even=0.5), WindowSplitter()
    windows = card.windows(10, 40)
    odd = card.windows(40, 44, off=0.2)
    found = splitter.split([*windows, *odd], card.samples(1, 50, 0))
    assert [window for window in found if window.end_ns - window.begin_ns > TENTH] == odd


def test_an_answer_about_two_tenths_cuts_no_window() -> None:
    card, splitter = Card(60, even=0.5), WindowSplitter()
    samples = card.samples(1, 50, 0)
    missed = BusySample(samples[20].begin_ns, samples[21].end_ns, 0.5)
    found = splitter.split(card.windows(10, 40), [*samples[:20], missed, *samples[22:]])
    assert sum(window.end_ns - window.begin_ns > TENTH for window in found) in (1, 2)


def test_a_clock_that_was_set_back_starts_anew() -> None:
    card, splitter = Card(60), WindowSplitter()
    splitter.split(card.windows(30, 50), card.samples(21, 56, 0))
    found = splitter.split(card.windows(2, 26), card.samples(1, 28, 0))
    assert card.exact(found)


def test_what_waits_when_the_clock_is_set_back_far_stays_whole() -> None:
    card, splitter = Card(60), WindowSplitter()
    waiting = card.windows(52, 56)
    splitter.split(card.windows(30, 52) + waiting, card.samples(21, 52, 0))
    hour = 3_600 * 10 * TENTH
    found = splitter.split(
        [BusyWindow(window.begin_ns - hour, window.end_ns - hour, window.busy_ns) for window in card.windows(2, 26)],
        [BusySample(sample.begin_ns - hour, sample.end_ns - hour, sample.busy) for sample in card.samples(1, 28, 0)],
    )
    assert list(found[:2]) == waiting
    assert len(found) > 20


def test_a_clock_that_is_set_back_between_two_samples_of_a_cycle_starts_anew() -> None:
    card, splitter = Card(60), WindowSplitter()
    hour = 3_600 * 10 * TENTH
    before = [
        BusySample(sample.begin_ns + hour, sample.end_ns + hour, sample.busy) for sample in card.samples(1, 28, 0)
    ]
    splitter.split([], [*before, *card.samples(1, 3, 0)])
    found = splitter.split(card.windows(2, 26), card.samples(3, 28, 0))
    assert card.exact(found)
    assert all(sample.end_ns < BEGIN + hour for sample in splitter._samples)


def test_nothing_is_kept_for_ever() -> None:
    card, splitter = Card(1000), WindowSplitter()
    for second in range(1, 99):
        first, last = 10 * second, 10 * second + 10
        splitter.split(card.windows(first, last), card.samples(first, last, 0))
    assert len(splitter._windows) <= 25
    assert len(splitter._samples) <= 45
