"""Whose the processes were that end between two readings of a card.

The driver's samples still name such a process, but /proc no longer shows it. So while they name strangers, new
processes are looked at as they come: the kernel numbers them in order and tells the newest number, so that a look
costs one small file and nothing else as long as no process is new. It needs no rights. Nothing is done on a node where
every process outlives a reading.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator

from msgspec import Struct

from podgpu.host.procfs import Procfs, has_begun
from podgpu.model import Holder

LOOK_SECONDS = 0.1
WATCHED_SECONDS = 600.0  # after the last stranger
SETTLED_SECONDS = 1.0  # a runtime or `su` may move a process that it has just started
KEPT_SECONDS = 120.0  # after a process was last seen
SWEEP_SECONDS = 30.0
MOST_KNOWN = 20_000
_CROWD = 1000  # new numbers; with more of them it is cheaper to list who lives
_WORK_SECONDS = 0.005  # for each look


class _Seen(Struct):
    """`is_disputed`: two processes of different owners had the PID, so it proves nothing."""

    holder: Holder
    at: float
    is_disputed: bool = False


class RecentProcesses:
    def __init__(
        self, procfs: Procfs, *, only_pods: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name = procfs.name
        self.errors: Counter[str] = Counter()
        self._procfs = procfs
        self._only_pods = only_pods
        self._clock = clock
        self._expected = asyncio.Event()
        self._until = self._swept_at = clock()
        self._last: int | None = None
        self._new: deque[int] = deque()
        self._old: deque[int] = deque()  # those that were there when the watch began
        self._again: deque[tuple[float, int]] = deque()
        self._known: dict[int, _Seen] = {}

    async def run(self) -> None:
        """Watch while strangers are expected, until cancelled."""
        while True:
            await self._expected.wait()
            while self._clock() < self._until:
                self.look()
                await asyncio.sleep(LOOK_SECONDS)
            self._rest()

    def expect(self) -> None:
        """Watch for a while: a card's samples name a process that nobody has seen."""
        self._until = self._clock() + WATCHED_SECONDS
        self._expected.set()

    def holder(self, pid: int, seen_at: float) -> Holder | None:
        """Return whose a process was that has ended, if it had begun when its PID was seen on a card."""
        seen = self._known.get(pid)
        if seen is None or seen.is_disputed or not has_begun(seen.holder, seen_at):
            return None
        return seen.holder

    def is_disputed(self, pid: int) -> bool:
        seen = self._known.get(pid)
        return seen is not None and seen.is_disputed

    def look(self) -> None:
        """Look at processes that have begun since the last look, for no longer than a few milliseconds."""
        last = None if self._procfs.fault() else self._procfs.newest_pid()
        if last is None:
            return
        now = self._clock()
        if self._last is None:
            self._old.extend(self._procfs.pids())
        else:
            self._new.extend(_between(self._last, last, self._procfs.largest_pid()))
        self._last = last
        if len(self._new) > _CROWD:
            living = set(self._procfs.pids())
            self._new = deque(pid for pid in self._new if pid in living)
        for pid, is_new in self._waiting(now):
            self._note(pid, now, is_new=is_new)
            if self._clock() - now >= _WORK_SECONDS:
                break
        if now - self._swept_at >= SWEEP_SECONDS:
            self._sweep(now)

    def _waiting(self, now: float) -> Iterator[tuple[int, bool]]:
        """Whom to look at, and whether it is new. The last are those who were there all the time."""
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
        is_other = before is not None and before.holder.start_time != holder.start_time
        if is_new and holder.kind != "pod":
            self._again.append((now + SETTLED_SECONDS, pid))
        if before is None and self._only_pods and holder.kind != "pod":
            return
        is_disputed = before is not None and (
            before.is_disputed or (is_other and _whose(before.holder) != _whose(holder))
        )
        self._known[pid] = _Seen(holder, now, is_disputed)
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]

    def _sweep(self, now: float) -> None:
        """Forget those who have been gone for a while."""
        living = set(self._procfs.pids())
        for pid in living & self._known.keys():
            self._known[pid].at = now
        self._known = {pid: seen for pid, seen in self._known.items() if now - seen.at < KEPT_SECONDS}
        self._swept_at = now

    def _rest(self) -> None:
        self._expected.clear()
        self._last = None
        for kept in (self._new, self._old, self._again, self._known):
            kept.clear()


def _between(last: int, newest: int, largest: int) -> Iterator[int]:
    """The numbers that were given out since: they go up, and begin anew after the largest."""
    if newest < last:
        yield from range(last + 1, largest + 1)
        last = 0
    yield from range(last + 1, newest + 1)


def _whose(holder: Holder) -> tuple[object, ...]:
    return holder.kind, holder.owner, holder.user
