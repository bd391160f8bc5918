"""A log of context switches for a simulated card: its processes rotate, and each slice costs a switch.

Times are nanoseconds since the start, of the windows and the log alike.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from random import Random

from podgpu.catalog import agent_parts
from podgpu.model import BusyWindow, PartStatus, Slice, SpotLog, SwitchLog
from podgpu.sources.simulator.timeline import CardTimeline, ReadingWindow

ROTATION_NS = 2_500_000  # in which each process with work gets one slice
SWITCH_NS = 84_000
WINDOW_NS = 200_000_000
LONGEST_NS = 10_000_000_000  # of a longer time, only the end is in the log
LEAST_LOAD = 0.005  # a process with less has no work
CHECK_NS = 300_000_000  # of the log, at a random moment of each stretch
STRETCH_NS = 6_600_000_000


class DemoSwitches:
    """Has no log beyond those that come with the cards."""

    name = agent_parts.SWITCHES.name

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter()

    async def read(self, cards: Mapping[str, int]) -> dict[str, SwitchLog]:
        return {}

    async def check(self, cards: Mapping[str, int]) -> dict[str, list[SpotLog]]:
        return {}

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=True)

    async def release(self, seconds: float) -> bool:
        return True

    async def close(self) -> None:
        """Nothing is open."""


def switch_log(timeline: CardTimeline, window: ReadingWindow) -> SwitchLog:
    end = _rotation_start(window.end)
    begin = max(_rotation_start(window.start), end - LONGEST_NS)
    slices = list(_slices(timeline, begin, end))
    gaps = [after.begin_ns - before.end_ns for before, after in pairwise(slices)]
    switches = sum(after.pid != before.pid for before, after in pairwise(slices))
    return SwitchLog(begin_ns=begin, end_ns=end, slices=tuple(slices), switches=switches, switching_ns=sum(gaps))


def spot_logs(timeline: CardTimeline, window: ReadingWindow) -> tuple[SpotLog, ...]:
    """The checks that have ended since the previous reading."""
    end = round(window.end * 1e9)
    begin = max(round(window.start * 1e9), end - LONGEST_NS)
    return tuple(
        SpotLog(stands_for=STRETCH_NS / 1e9, slices=tuple(_slices(timeline, at, at + CHECK_NS)))
        for at in (_check_start(stretch) for stretch in range(begin // STRETCH_NS, end // STRETCH_NS + 1))
        if begin < at + CHECK_NS <= end
    )


def _check_start(stretch: int) -> int:
    # Not a secret, unlike on a real card: the same for every reading that may report it.
    start = Random(stretch).randrange(STRETCH_NS - CHECK_NS)  # noqa: S311
    return (stretch * STRETCH_NS + start) // ROTATION_NS * ROTATION_NS


def busy_windows(timeline: CardTimeline, window: ReadingWindow) -> tuple[BusyWindow, ...]:
    """The windows that have ended since the previous reading."""
    end = round(window.end * 1e9)
    begin = max(round(window.start * 1e9), end - LONGEST_NS)
    return tuple(
        BusyWindow(
            last - WINDOW_NS,
            last,
            round(timeline.busy_us(ReadingWindow((last - WINDOW_NS) / 1e9, last / 1e9)) * 1000),
        )
        for last in range((begin // WINDOW_NS + 1) * WINDOW_NS, end + 1, WINDOW_NS)
    )


def _rotation_start(seconds: float) -> int:
    return round(seconds * 1e9) // ROTATION_NS * ROTATION_NS


def _slices(timeline: CardTimeline, begin: int, end: int) -> Iterator[Slice]:
    """The last context stays when its work is done, until another process needs the card."""
    current: Slice | None = None
    for at in range(begin, end, ROTATION_NS):
        for new in _rotation(timeline, at, current):
            if current and current.pid == new.pid:
                current = Slice(new.pid, current.begin_ns, new.end_ns)
            else:
                if current:
                    yield current
                current = new
    if current:
        yield current


def _rotation(timeline: CardTimeline, begin: int, current: Slice | None) -> Iterator[Slice]:
    loads = timeline.loads(begin / 1e9)
    working = [(pid, load) for pid, load in loads if load > LEAST_LOAD]
    if not working:
        yield Slice(current.pid if current else loads[0][0], begin, begin + ROTATION_NS)
        return
    room = ROTATION_NS - SWITCH_NS * len(working)
    scale = min(1.0, room / ROTATION_NS / sum(load for _, load in working))
    at, end = begin + SWITCH_NS, begin + ROTATION_NS
    for number, (pid, load) in enumerate(working, 1):
        until = end if number == len(working) else at + round(load * scale * ROTATION_NS)
        yield Slice(pid, begin if len(working) == 1 else at, until)
        at = until + SWITCH_NS
