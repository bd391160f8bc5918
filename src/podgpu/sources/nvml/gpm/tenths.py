"""Cuts the driver's windows of 200 ms in halves, by GPM's means over tenths of a second.

The driver gives the exact time of each window, but finds its busy time by a few looks: it is off by some per cent. GPM
counts the busy time of each tenth of a second, on a grid that lies still beside the driver's, but does not say which
tenth an answer is about. On an H200 that was one that had ended up to 130 ms before the question. This delay drifts
through its whole range every half a minute, so no constant will do. It is found by what fits the driver's windows of
the last seconds, and a window that fits no two tenths stays whole.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from podgpu.model import BusyWindow

TENTH = 100_000_000  # nanoseconds, like all times here
AHEAD = 11_000_000  # GPM's tenths end this long before the driver's windows: 10 to 12 ms in two recordings
DELAYS = range(0, 140_000_000, 10_000_000)
NEAR = 4_000_000_000  # long enough to tell one delay from another, too short for it to drift away
AT_ONCE = 10  # windows that are cut by the same delay
FEWEST = 10  # windows that a delay must be judged by
TOLERANCE = 0.1  # between the mean of two tenths and the driver's figure


class Glimpse(Struct, frozen=True, gc=False):
    """GPM's answer: how busy the card was, and between which samples."""

    begin_ns: int
    end_ns: int
    busy: float


class Tenths:
    """Takes what is new about a card, cycle by cycle, and remembers the last seconds."""

    def __init__(self) -> None:
        self._glimpses: list[Glimpse] = []
        self._windows: list[BusyWindow] = []
        self._waiting: list[BusyWindow] = []

    def cut(self, windows: Iterable[BusyWindow], glimpses: Sequence[Glimpse]) -> tuple[BusyWindow, ...]:
        """Return the windows, halved where that is possible. The newest may wait for glimpses of the next cycle."""
        late, fresh, self._waiting = self._waiting, list(windows), []
        found: list[BusyWindow] = []
        valid = _since_set_back([*self._glimpses[-1:], *glimpses])
        if not glimpses or valid is not None:
            self._glimpses, self._windows = [], []
            found, late = late, []  # there is nothing left to cut them by
            glimpses = valid or glimpses
        if not glimpses:
            return (*found, *fresh)
        self._windows += fresh
        self._glimpses += glimpses
        found += self._halved(late, waits=False)
        for first in range(0, len(fresh), AT_ONCE):
            found += self._halved(fresh[first : first + AT_ONCE], waits=True)
        oldest = glimpses[-1].end_ns - NEAR
        self._windows = [one for one in self._windows if one.end_ns > oldest]
        self._glimpses = [one for one in self._glimpses if one.end_ns > oldest]
        return tuple(found)

    def _halved(self, some: Sequence[BusyWindow], *, waits: bool) -> Iterator[BusyWindow]:
        """Cut windows that follow each other. From the first one whose tenths have not come, they may wait."""
        if not some:
            return
        begin, end = some[0].end_ns - NEAR, some[-1].end_ns + NEAR // 2
        near = [one for one in self._windows if begin < one.end_ns <= end]
        glimpses = [one for one in self._glimpses if begin < one.end_ns <= end]
        phase = _phase(near)
        tenths = _fitting(near, glimpses, phase)
        for one in some:
            if self._waiting or (waits and _place(one, phase) > max(tenths, default=0)):
                self._waiting.append(one)
            else:
                yield from _halves(one, tenths, phase)


def _since_set_back(glimpses: Sequence[Glimpse]) -> Sequence[Glimpse] | None:
    """Return those since the clock was last set back, None if it was not."""
    for place in range(len(glimpses) - 1, 0, -1):
        if glimpses[place].end_ns <= glimpses[place - 1].end_ns:
            return glimpses[place:]
    return None


def _phase(windows: Sequence[BusyWindow]) -> int:
    """Return where on the clock tenths end. A stamp may be late, but not most of them."""
    anchor = windows[-1].end_ns
    off = sorted((one.end_ns - anchor + TENTH // 2) % TENTH - TENTH // 2 for one in windows)
    return (anchor + off[len(off) // 2] - AHEAD) % TENTH


def _place(window: BusyWindow, phase: int) -> int:
    """Return the number of the tenth that ends with the window."""
    return (window.end_ns - AHEAD - phase + TENTH // 2) // TENTH


def _fitting(windows: Sequence[BusyWindow], glimpses: Sequence[Glimpse], phase: int) -> dict[int, float]:
    """Return how busy each tenth was, by the delay that fits best; nothing if none does, or too few can judge."""
    best, least = dict[int, float](), TOLERANCE
    for delay in DELAYS:
        tenths = _tenths(glimpses, delay, phase)
        gaps = [gap for one in windows if (gap := _gap(one, tenths, phase)) is not None]
        if len(gaps) >= FEWEST and (error := sum(gaps) / len(gaps)) < least:
            best, least = tenths, error
    return best


def _tenths(glimpses: Iterable[Glimpse], delay: int, phase: int) -> dict[int, float]:
    """An answer about two tenths says nothing about either."""
    found = {}
    for one in glimpses:
        last = (one.end_ns - delay - phase) // TENTH
        if last - (one.begin_ns - delay - phase) // TENTH == 1:
            found[last] = one.busy
    return found


def _gap(window: BusyWindow, tenths: Mapping[int, float], phase: int) -> float | None:
    """Return by how much the window differs from its two tenths."""
    last = _place(window, phase)
    first, second = tenths.get(last - 1), tenths.get(last)
    if first is None or second is None:
        return None
    return abs((first + second) / 2 - window.busy_ns / (window.end_ns - window.begin_ns))


def _halves(window: BusyWindow, tenths: Mapping[int, float], phase: int) -> Iterator[BusyWindow]:
    gap = _gap(window, tenths, phase)
    if gap is None or gap > TOLERANCE:
        yield window
        return
    last = _place(window, phase)
    for one in (last - 1, last):
        yield BusyWindow(phase + (one - 1) * TENTH, phase + one * TENTH, round(tenths[one] * TENTH))
