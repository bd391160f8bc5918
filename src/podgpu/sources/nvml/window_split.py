"""Splits the driver's windows of 200 ms into halves, by GPM's means over tenths of a second.

The driver gives the exact time of each window, but estimates its busy time from a few samples: it is off by some per
cent. GPM counts the busy time of each tenth of a second, on a grid at a constant offset to the driver's, but does not
say which tenth an answer is about. On an H200 that tenth had ended up to 130 ms before the question. This delay drifts
through its whole range every half a minute, so no constant will do. The delay that best fits the driver's windows of
the last seconds is taken, and a window that fits no two tenths stays whole.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from podgpu.model import BusyWindow

TENTH = 100_000_000  # nanoseconds, like all times here
AHEAD = 11_000_000  # GPM's tenths end this long before the driver's windows: 10 to 12 ms in two recordings
DELAYS = range(0, 140_000_000, 10_000_000)
NEAR = 4_000_000_000  # long enough to distinguish delays, too short for a drift
AT_ONCE = 10  # windows that are split by the same delay
FEWEST = 10  # windows that a delay must be judged by
TOLERANCE = 0.1  # between the mean of two tenths and the driver's figure


class BusySample(Struct, frozen=True, gc=False):
    """GPM's answer: how busy the card was, and between which samples."""

    begin_ns: int
    end_ns: int
    busy: float


class WindowSplitter:
    """Takes what is new about a card, cycle by cycle, and remembers the last seconds."""

    def __init__(self) -> None:
        self._samples: list[BusySample] = []
        self._windows: list[BusyWindow] = []
        self._waiting: list[BusyWindow] = []

    def split(self, windows: Iterable[BusyWindow], samples: Sequence[BusySample]) -> tuple[BusyWindow, ...]:
        """Return the windows, halved where that is possible. The newest may wait for samples of the next cycle."""
        late, fresh, self._waiting = self._waiting, list(windows), []
        found: list[BusyWindow] = []
        valid = _since_set_back([*self._samples[-1:], *samples])
        if not samples or valid is not None:
            self._samples, self._windows = [], []
            found, late = late, []  # there is nothing left to split them by
            samples = valid or samples
        if not samples:
            return (*found, *fresh)
        self._windows += fresh
        self._samples += samples
        found += self._halved(late, waits=False)
        for first in range(0, len(fresh), AT_ONCE):
            found += self._halved(fresh[first : first + AT_ONCE], waits=True)
        oldest = samples[-1].end_ns - NEAR
        self._windows = [window for window in self._windows if window.end_ns > oldest]
        self._samples = [sample for sample in self._samples if sample.end_ns > oldest]
        return tuple(found)

    def _halved(self, group: Sequence[BusyWindow], *, waits: bool) -> Iterator[BusyWindow]:
        """Split consecutive windows. From the first whose tenths have not come, they may wait."""
        if not group:
            return
        begin, end = group[0].end_ns - NEAR, group[-1].end_ns + NEAR // 2
        near = [window for window in self._windows if begin < window.end_ns <= end]
        samples = [sample for sample in self._samples if begin < sample.end_ns <= end]
        phase = _phase(near)
        tenths = _fitting(near, samples, phase)
        for window in group:
            if self._waiting or (waits and _last_tenth(window, phase) > max(tenths, default=0)):
                self._waiting.append(window)
            else:
                yield from _halves(window, tenths, phase)


def _since_set_back(samples: Sequence[BusySample]) -> Sequence[BusySample] | None:
    """Return the samples since the clock was last set back, None if it was not."""
    for place in range(len(samples) - 1, 0, -1):
        if samples[place].end_ns <= samples[place - 1].end_ns:
            return samples[place:]
    return None


def _phase(windows: Sequence[BusyWindow]) -> int:
    """Return where on the clock tenths end. A stamp may be late, but not most of them."""
    anchor = windows[-1].end_ns
    off = sorted((window.end_ns - anchor + TENTH // 2) % TENTH - TENTH // 2 for window in windows)
    return (anchor + off[len(off) // 2] - AHEAD) % TENTH


def _last_tenth(window: BusyWindow, phase: int) -> int:
    """Return the number of the tenth that ends with the window."""
    return (window.end_ns - AHEAD - phase + TENTH // 2) // TENTH


def _fitting(windows: Sequence[BusyWindow], samples: Sequence[BusySample], phase: int) -> dict[int, float]:
    """Return how busy each tenth was, by the delay that fits best. Empty if none fits, or the windows are too few."""
    best, least = dict[int, float](), TOLERANCE
    for delay in DELAYS:
        tenths = _tenths(samples, delay, phase)
        gaps = [gap for window in windows if (gap := _gap(window, tenths, phase)) is not None]
        if len(gaps) >= FEWEST and (error := sum(gaps) / len(gaps)) < least:
            best, least = tenths, error
    return best


def _tenths(samples: Iterable[BusySample], delay: int, phase: int) -> dict[int, float]:
    """Assign samples to tenths. A sample that covers two tenths says nothing about either."""
    found = {}
    for sample in samples:
        last = (sample.end_ns - delay - phase) // TENTH
        if last - (sample.begin_ns - delay - phase) // TENTH == 1:
            found[last] = sample.busy
    return found


def _gap(window: BusyWindow, tenths: Mapping[int, float], phase: int) -> float | None:
    """Return by how much the window differs from its two tenths."""
    last = _last_tenth(window, phase)
    first, second = tenths.get(last - 1), tenths.get(last)
    if first is None or second is None:
        return None
    return abs((first + second) / 2 - window.busy_ns / (window.end_ns - window.begin_ns))


def _halves(window: BusyWindow, tenths: Mapping[int, float], phase: int) -> Iterator[BusyWindow]:
    gap = _gap(window, tenths, phase)
    if gap is None or gap > TOLERANCE:
        yield window
        return
    last = _last_tenth(window, phase)
    for tenth in (last - 1, last):
        yield BusyWindow(phase + (tenth - 1) * TENTH, phase + tenth * TENTH, round(tenths[tenth] * TENTH))
