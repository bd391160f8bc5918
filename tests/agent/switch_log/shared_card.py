"""A card that two pods share, second by second, with its samples and its log. One of them may hide from the samples."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from podgpu.agent.attribution import Attributed, Attribution
from podgpu.agent.switch_log import SwitchLogs
from podgpu.host.procfs import Procfs
from podgpu.model import Booking, BusyWindow, Device, Gpu, PartStatus, Process, Reading, Slice, SpotLog, SwitchLog
from tests.agent.stage import StillPods, write_proc
from tests.agent.test_attribution import GPU, OTHER, UID, cgroup, pod

MS = 1_000_000
SAMPLE = 200 * MS
BEGIN = 1_000 * SAMPLE
OPEN_PID, HIDING_PID = 70, 80
TURN, PART, SWITCH = round(4.7 * MS), round(2.4 * MS), round(0.08 * MS)  # out of step with the samples
BEFORE, AFTER = 14 * MS, 8 * MS  # how long a hider rests around a sample
CHECK = 300 * MS
STRETCH = 6_600 * MS  # from which the moment of each check is drawn


@dataclass
class Reader:
    """Checks the log of the card at random moments, as the reading process does. `checked` are these, in seconds."""

    card: "SharedCard"
    chance: Random
    name: str = "switches"
    errors: Counter[str] = field(default_factory=Counter)
    checked: list[float] = field(default_factory=list)
    _next: int = BEGIN

    async def read(self, cards: Mapping[str, int]) -> dict[str, SwitchLog]:
        return {}

    async def check(self, cards: Mapping[str, int]) -> dict[str, list[SpotLog]]:
        if not cards:
            self._next = self.card.now_ns
            return {}
        found = []
        while self._next + STRETCH <= self.card.now_ns:
            at = self._next + round(self.chance.random() * (STRETCH - CHECK))
            self._next += STRETCH
            self.checked.append((at - BEGIN) / 1e9)
            slices = tuple(
                Slice(0, piece.begin_ns, piece.end_ns) if self.card.is_blurred else piece
                for piece in self.card.slices(at, at + CHECK)
            )
            found.append(SpotLog(stands_for=STRETCH / 1e9, slices=slices))
        return {GPU: found}

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=True)

    async def release(self, _: float) -> bool:
        return True

    async def close(self) -> None: ...


class SharedCard:
    """The clock stands still between two cycles. The second pod hides while `hides`, and has half of the card."""

    def __init__(self, folder: Path, *, checks: bool, seed: int = 1, interval: float = 5.0) -> None:
        proc = folder / "proc"
        write_proc(proc, OPEN_PID, cgroup(UID, "a"))
        write_proc(proc, HIDING_PID, cgroup(OTHER, "b"))
        self.now_ns = BEGIN
        self.hides = True
        self.is_blurred = False  # the log hides whose each slice is
        self.reader = Reader(self, Random(seed))
        self._interval = interval
        switch_logs = SwitchLogs(self.reader, always=False, checks_only=True, clock=lambda: self.seconds)
        self.attribution = Attribution(
            interval=interval,
            pod_sources=[StillPods((pod(), pod(OTHER, "batch", "b")))],
            processes=Procfs(proc),
            switch_logs=switch_logs if checks else None,
        )

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return (self.now_ns - BEGIN) / 1e9

    def slices(self, begin: int, end: int) -> Iterator[Slice]:
        """Both in turns. While one hides, the other one is alone around each sample."""
        for turn in range(begin // TURN, end // TURN + 1):
            at = turn * TURN
            hidden = self.hides and _is_near(at, TURN)
            for pid, first, last in (
                [(OPEN_PID, 0, TURN - SWITCH)]
                if hidden
                else [(OPEN_PID, 0, TURN - PART - SWITCH), (HIDING_PID, TURN - PART, TURN - SWITCH)]
            ):
                if max(at + first, begin) < min(at + last, end):
                    yield Slice(pid, max(at + first, begin), min(at + last, end))

    def resident(self, begin: int, end: int) -> float:
        """The part of both tenants' time that is the second one's."""
        time = Counter[int]()
        for piece in self.slices(begin, end):
            time[piece.pid] += piece.end_ns - piece.begin_ns
        return time[HIDING_PID] / time.total()

    async def cycle(self) -> Attributed:
        """The card is always busy. A sample names whoever came last before it."""
        begin = self.now_ns
        self.now_ns += round(self._interval * 1e9)
        stamps = range((begin // SAMPLE + 1) * SAMPLE, self.now_ns + 1, SAMPLE)
        named = Counter(list(self.slices(stamp - TURN, stamp))[-1].pid for stamp in stamps)
        processes = tuple(
            Process(
                pid=pid,
                kinds=("compute",),
                memory_bytes=1 << 30,
                sm_busy_us=round(named[pid] * SAMPLE / 1000),
            )
            for pid in (OPEN_PID, HIDING_PID)
        )
        device = Device(
            gpu=Gpu(uuid=GPU, index=0, minor=0),
            at=self.seconds,
            readings=(
                Reading("graphics_engine_active_ratio", 0.99),
                Reading("energy_joules_total", 500 * self.seconds),
            ),
            processes=processes,
            windows=tuple(BusyWindow(stamp - SAMPLE, stamp, 198 * MS) for stamp in stamps),
        )
        return await self.attribution.attribute([device], self.seconds)


def bookings(found: Attributed) -> tuple[Booking, Booking]:
    """Of the one that is seen, and of the other."""
    by_pod = {tenant.container.pod: tenant.booking for tenant in found.cards[0].tenants}
    return by_pod["chat"], by_pod["batch"]


def _is_near(at: int, length: int) -> bool:
    """Whether a piece of work from here on would come near a sample."""
    sample = (at + length + BEFORE) // SAMPLE * SAMPLE
    return at < sample + AFTER and at + length > sample - BEFORE
