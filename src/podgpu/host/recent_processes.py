"""The owners of processes that end between two readings of a card.

The driver's samples still name such a process, but /proc no longer shows it. So while the samples name unknown
processes, new processes are read as they start. The kernel numbers them in order and shows the newest number, so a
check reads one small file as long as no process is new. It needs no rights. Nothing is done on a node where every
process outlives a reading.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from itertools import chain

from msgspec import Struct

from podgpu.host.procfs import Procfs, has_begun, seconds_asleep
from podgpu.model import Holder

LOOK_SECONDS = 0.1
# How long to watch after the last unknown process, so that less than a hundredth of any owner's time is missed.
WATCHED_SECONDS, WATCHED_INTERVALS = 600.0, 120
# How long a process is kept after it was last seen: the samples of the next reading may name it.
KEPT_SECONDS, KEPT_INTERVALS = 120.0, 3
SETTLED_SECONDS = 1.0  # a runtime or `su` may move a process that it has just started
SWEEP_SECONDS = 30.0
MOST_KNOWN = 20_000
_CROWD = 1000  # new PIDs; if there are more, it is cheaper to list the living processes
_WORK_SECONDS = 0.005  # for each poll


class _Seen(Struct):
    """`is_disputed`: two processes of different owners had the PID, so it proves nothing.

    `is_reused`: the kernel may have assigned this PID again, and it has not been read since.
    """

    holder: Holder
    at: float
    is_disputed: bool = False
    is_reused: bool = False


class RecentProcesses:
    """`interval` is the time between two readings."""

    def __init__(
        self,
        procfs: Procfs,
        *,
        interval: float,
        only_pods: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = procfs.name
        self._watched_for = max(WATCHED_SECONDS, WATCHED_INTERVALS * interval)
        self._kept_for = max(KEPT_SECONDS, KEPT_INTERVALS * interval)
        self.errors: Counter[str] = Counter()
        self._procfs = procfs
        self._only_pods = only_pods
        self._clock = clock
        self._expected = asyncio.Event()
        self._until = self._swept_at = clock()
        self._last: int | None = None
        self._new: deque[int] = deque()
        self._old: deque[int] = deque()  # processes from before the watch
        self._again: deque[tuple[float, int]] = deque()
        self._known: dict[int, _Seen] = {}

    async def run(self) -> None:
        """Watch while unknown processes are expected, until cancelled."""
        while True:
            await self._expected.wait()
            while self._clock() < self._until:
                # In a thread: where a tenant has thousands of processes and starts more, all are listed.
                await asyncio.to_thread(self.look)
                await asyncio.sleep(LOOK_SECONDS)
            self._rest()

    def expect(self) -> None:
        """Watch for a while: a card's samples name an unknown process."""
        self._until = self._clock() + self._watched_for
        self._expected.set()

    def holder(self, pid: int, seen_at: float) -> Holder | None:
        """Return the owner of a process that has ended, if it had begun when its PID was seen on a card."""
        seen = self._known.get(pid)
        if seen is None or self.is_disputed(pid) or not has_begun(seen.holder, seen_at + seconds_asleep()):
            return None
        return seen.holder

    def is_disputed(self, pid: int) -> bool:
        """Whether another process may have had the PID since it was seen."""
        seen = self._known.get(pid)
        return seen is not None and (seen.is_disputed or seen.is_reused)

    def look(self) -> None:
        """Read the processes that have started since the last poll, for no longer than a few milliseconds."""
        last = None if self._procfs.fault() else self._procfs.newest_pid()
        if last is None:
            return
        now = self._clock()
        if self._last is None:
            self._old.extend(self._procfs.pids())
        else:
            self._queue_new(_between(self._last, last, self._procfs.largest_pid()))
        self._last = last
        for pid, is_new in self._waiting(now):
            self._note(pid, now, is_new=is_new)
            if self._clock() - now >= _WORK_SECONDS:
                break
        if now - self._swept_at >= SWEEP_SECONDS:
            self._sweep(now)

    def _queue_new(self, numbers: tuple[range, range]) -> None:
        """Queue the processes whose PIDs the kernel assigned since the last poll."""
        if sum(map(len, numbers)) <= _CROWD:
            for pid in chain(*numbers):
                self._new.append(pid)
                if seen := self._known.get(pid):
                    seen.is_reused = True
        else:
            self._new.extend(pid for pid in self._procfs.pids() if _is_in(numbers, pid))
            for pid, seen in self._known.items():
                seen.is_reused |= _is_in(numbers, pid)
        if len(self._new) > _CROWD:
            living = set(self._procfs.pids())
            self._new = deque(pid for pid in self._new if pid in living)

    def _waiting(self, now: float) -> Iterator[tuple[int, bool]]:
        """Return the PIDs to read, and whether each is new. Those from before the watch come last."""
        while self._new:
            yield self._new.popleft(), True
        while self._again and self._again[0][0] <= now:
            yield self._again.popleft()[1], False
        while self._old:
            yield self._old.popleft(), False

    def _note(self, pid: int, now: float, *, is_new: bool) -> None:
        holder = self._procfs.newcomer(pid)
        if holder is None:
            return
        before = self._known.get(pid)
        if is_new and holder.kind != "pod":
            self._again.append((now + SETTLED_SECONDS, pid))
        if before is None and self._only_pods and holder.kind != "pod":
            return
        is_disputed = before is not None and (before.is_disputed or _is_of_another(before.holder, holder))
        self._known[pid] = _Seen(holder, now, is_disputed)
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]

    def _sweep(self, now: float) -> None:
        """Forget processes that ended a while ago."""
        living = set(self._procfs.pids())
        for pid in living & self._known.keys():
            self._known[pid].at = now
        self._known = {pid: seen for pid, seen in self._known.items() if now - seen.at < self._kept_for}
        self._swept_at = now

    def _rest(self) -> None:
        self._expected.clear()
        self._last = None
        for kept in (self._new, self._old, self._again, self._known):
            kept.clear()


def _between(last: int, newest: int, largest: int) -> tuple[range, range]:
    """Return the PIDs that were assigned since `last`. They increase, and start over after the largest."""
    if newest < last:
        return range(last + 1, largest + 1), range(1, newest + 1)
    return range(last + 1, newest + 1), range(0)


def _is_in(numbers: tuple[range, range], pid: int) -> bool:
    return pid in numbers[0] or pid in numbers[1]


def _is_of_another(before: Holder, now: Holder) -> bool:
    """Whether it is another process than before, and of another owner."""
    owners = {(holder.kind, holder.owner, holder.user) for holder in (before, now)}
    return before.start_time != now.start_time and len(owners) > 1
