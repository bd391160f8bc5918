"""A log of context switches for a simulated card: its processes take turns, and each turn costs a switch.

Times are nanoseconds since the start, of the windows and the log alike.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from podgpu.catalog import agent_parts
from podgpu.model import BusyWindow, PartStatus, Slice, SwitchLog
from podgpu.sources.simulator.motion import Window
from podgpu.sources.simulator.tape import Tape

TURNS_NS = 2_500_000  # in which everybody who has work comes once
SWITCH_NS = 84_000
WINDOW_NS = 200_000_000
LONGEST_NS = 10_000_000_000  # of a longer time, only the end is in the log
AT_WORK = 0.005  # whoever does less has no work


class DemoSwitches:
    """Has no log beyond those that come with the cards."""

    name = agent_parts.SWITCHES.name

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter()

    async def read(self, cards: Mapping[str, int]) -> dict[str, SwitchLog]:
        return {}

    def shut(self, cards: Iterable[str]) -> None:
        """Nothing is open."""

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=True)

    async def release(self, seconds: float) -> bool:
        return True

    async def close(self) -> None:
        """Nothing is open."""


def switch_log(tape: Tape, window: Window) -> SwitchLog:
    end = _turn(window.end)
    begin = max(_turn(window.start), end - LONGEST_NS)
    slices = list(_slices(tape, begin, end))
    gaps = [after.begin_ns - before.end_ns for before, after in pairwise(slices)]
    switches = sum(after.pid != before.pid for before, after in pairwise(slices))
    return SwitchLog(
        begin_ns=begin, end_ns=end, slices=tuple(slices), switches=switches, switching_ns=sum(gaps)
    )


def busy_windows(tape: Tape, window: Window) -> tuple[BusyWindow, ...]:
    """Those that have ended since the reading before."""
    end = round(window.end * 1e9)
    begin = max(round(window.start * 1e9), end - LONGEST_NS)
    return tuple(
        BusyWindow(
            last - WINDOW_NS, last, round(tape.busy_us(Window((last - WINDOW_NS) / 1e9, last / 1e9)) * 1000)
        )
        for last in range((begin // WINDOW_NS + 1) * WINDOW_NS, end + 1, WINDOW_NS)
    )


def _turn(seconds: float) -> int:
    return round(seconds * 1e9) // TURNS_NS * TURNS_NS


def _slices(tape: Tape, begin: int, end: int) -> Iterator[Slice]:
    """Whoever comes last stays when its work is done, until somebody else needs the card."""
    there: Slice | None = None
    for at in range(begin, end, TURNS_NS):
        for one in _one_turn(tape, at, there):
            if there and there.pid == one.pid:
                there = Slice(one.pid, there.begin_ns, one.end_ns)
            else:
                if there:
                    yield there
                there = one
    if there:
        yield there


def _one_turn(tape: Tape, begin: int, there: Slice | None) -> Iterator[Slice]:
    loads = tape.loads(begin / 1e9)
    at_work = [(pid, load) for pid, load in loads if load > AT_WORK]
    if not at_work:
        yield Slice(there.pid if there else loads[0][0], begin, begin + TURNS_NS)
        return
    room = TURNS_NS - SWITCH_NS * len(at_work)
    scale = min(1.0, room / TURNS_NS / sum(load for _, load in at_work))
    at, end = begin + SWITCH_NS, begin + TURNS_NS
    for number, (pid, load) in enumerate(at_work, 1):
        until = end if number == len(at_work) else at + round(load * scale * TURNS_NS)
        yield Slice(pid, begin if len(at_work) == 1 else at, until)
        at = until + SWITCH_NS
