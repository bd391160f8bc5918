"""Keeps long tasks going: one that fails is counted, logged once for each cause, shown as down, and started again.

Only this module makes tasks. Long ones are supervised; `brief` is for work that ends by itself.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Hashable, Iterable
from typing import Any, Generic, ParamSpec, TypeVar

from msgspec.structs import replace

from podgpu import log
from podgpu.model import Fault, PartStatus

FIRST_PAUSE = 1.0  # before a task that failed is started again; twice as long each time
LONGEST_PAUSE = 30.0
DETAIL_LENGTH = 300
QUIET_SECONDS = 4.5  # between two questions while nothing changes: with an interval of 1 s, every fifth cycle
RESTLESS_SECONDS = 10.0  # after a change, all cycles ask: the answer may be behind, or more may follow
REASON = "crashed"

P = ParamSpec("P")
T = TypeVar("T")
Work = Callable[[], Awaitable[object]]


def brief(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start a task that ends by itself, such as a request. The caller keeps it and handles its errors."""
    return asyncio.get_running_loop().create_task(work)


class BriefTasks:
    """Tasks that end by themselves, whose results nobody needs. The event loop alone would not keep them alive."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = brief(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def finish(self, seconds: float) -> None:
        """Wait for them, but no longer than that; then cancel them."""
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=seconds)
            for task in late:
                task.cancel()


class SingleFlight(Generic[T]):
    """Work that is done once for all callers that wait for its result."""

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[T]] = {}

    async def result(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Wait for the result of this key's work, and start it unless it runs already. Raises what `work` raises."""
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = brief(work())
            task.add_done_callback(lambda done: self._end(key, done))
        # Others may wait for the same, so a client that leaves does not end it.
        return await asyncio.shield(task)

    @property
    def keys(self) -> Collection[Hashable]:
        """Of the work that is being done."""
        return self._running.keys()

    def close(self) -> None:
        for task in self._running.values():
            task.cancel()

    def _end(self, key: Hashable, task: asyncio.Task[T]) -> None:
        del self._running[key]
        if not task.cancelled():
            task.exception()  # retrieved, even if every caller has left


class LatestReply(Generic[P, T]):
    """Asks one question at a time, waits `patience` seconds for the reply, and else returns the previous one."""

    def __init__(self, ask: Callable[P, Coroutine[Any, Any, T]], patience: float) -> None:
        self.reply: T | None = None
        self._ask = ask
        self._patience = patience
        self._asking: asyncio.Task[T] | None = None

    @property
    def is_asking(self) -> bool:
        return self._asking is not None

    async def get(self, *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Raises what the question raised."""
        asked = self._asking = self._asking or brief(self._ask(*args, **kwargs))
        done, _ = await asyncio.wait({asked}, timeout=self._patience)
        if done:
            if self._asking is asked:  # else another caller has the reply already
                self._asking = None
            self.reply = asked.result()
        return self.reply

    async def close(self) -> None:
        if self._asking:
            self._asking.cancel()
            await asyncio.wait({self._asking})


class CalmReply(Generic[T]):
    """A question that is asked in every cycle or, with a short interval, seldom while nothing changes.

    Nothing a pod does is missed: whatever starts or ends changes the list of pods or the processes on the cards, and
    then the question is asked at once. To ask the kubelet takes a sixth of the agent's work in a cycle.
    """

    def __init__(
        self,
        ask: Callable[[], Coroutine[Any, Any, T]],
        patience: float,
        clock: Callable[[], float],
        is_steady: Callable[[T | None], bool],
    ) -> None:
        """`is_steady` says whether the next answer will be the same, unless a pod starts or ends."""
        self._latest = LatestReply(ask, patience)
        self._clock = clock
        self._is_steady = is_steady
        self._signs: object = None
        self._asked_at = self._changed_at = clock()

    @property
    def seconds_since_asked(self) -> float:
        return self._clock() - self._asked_at

    async def get(self, signs: object) -> T | None:
        """Return the last answer. `signs` change when a pod starts or ends; None if nothing would show that."""
        now = self._clock()
        if signs is None or signs != self._signs:
            self._signs, self._changed_at = signs, now
        is_calm = now - self._changed_at > RESTLESS_SECONDS and not self._latest.is_asking
        if is_calm and now - self._asked_at < QUIET_SECONDS and self._is_steady(self._latest.reply):
            return self._latest.reply
        known, self._asked_at = self._latest.reply, now
        found = await self._latest.get()
        if found is not known and found != known:
            self._changed_at = now
        return found

    async def close(self) -> None:
        await self._latest.close()


class Supervisor:
    """The long tasks of one owner. While a task is down, so is the part that has its name.

    `failed` is called after each failure, so that the owner can show it at once.
    """

    def __init__(
        self,
        failed: Callable[[], None] = lambda: None,
        *,
        first_pause: float = FIRST_PAUSE,
        longest_pause: float = LONGEST_PAUSE,
    ) -> None:
        self.errors: Counter[tuple[str, str]] = Counter()
        self._failed = failed
        self.first_pause = first_pause
        self.longest_pause = longest_pause
        self._down: dict[_Task, Fault] = {}

    def supervise(self, name: str, work: Work) -> asyncio.Task[None]:
        """Run the work until it ends or is cancelled. However often it fails, it is started again."""
        return asyncio.get_running_loop().create_task(self._keep(_Task(name), work))

    async def run(self, works: Iterable[tuple[str, Work]]) -> None:
        """Supervise all of them until cancelled."""
        tasks = [self.supervise(name, work) for name, work in works]
        try:
            if tasks:
                await asyncio.wait(tasks)
        finally:
            await end(*tasks)

    def shown(self, parts: Iterable[PartStatus]) -> tuple[PartStatus, ...]:
        """Show what failed as down. A task without a part of its own becomes one when it first fails."""
        faults = {task.name: fault for task, fault in self._down.items()}
        found = tuple(
            replace(part, up=False, fault=faults[part.name]) if part.name in faults else part for part in parts
        )
        others = sorted({name for name, _ in self.errors} - {part.name for part in found})
        return *found, *(PartStatus(name=name, up=name not in faults, fault=faults.get(name)) for name in others)

    async def _keep(self, task: "_Task", work: Work) -> None:
        loop, ran = asyncio.get_running_loop(), 0.0
        try:
            while True:
                began = time.monotonic()
                # What fails again takes about as long as the last time to do so.
                stable = min(self.first_pause + ran, self.longest_pause)
                recovery = loop.call_later(stable, self._recovered, task)
                try:
                    await work()
                    return
                except Exception as error:
                    ran = time.monotonic() - began
                    self._note(task, error, ran)
                finally:
                    recovery.cancel()
                await asyncio.sleep(self._pause(task))
        finally:
            self._down.pop(task, None)

    def _note(self, task: "_Task", error: Exception, ran: float) -> None:
        if ran > self.longest_pause:
            task.reset()
        self.errors[task.name, REASON] += 1
        self._down[task] = Fault(reason=REASON, detail=repr(error)[:DETAIL_LENGTH])
        cause = (type(error).__name__, log.raised_at(error.__traceback__))  # its message may differ each time
        if cause not in task.causes:
            task.causes.add(cause)
            task.is_logged = True
            log.error("a part crashed; it is started again", part=task.name, error=error, at=cause[1])
        try:
            self._failed()
        except Exception as trouble:  # showing it must not end what would start it again
            log.error("a failure cannot be shown; please report this", part=task.name, error=trouble)

    def _pause(self, task: "_Task") -> float:
        task.failures += 1
        doubled: float = self.first_pause * 2.0 ** min(task.failures - 1, 30)
        return min(doubled, self.longest_pause)

    def _recovered(self, task: "_Task") -> None:
        if self._down.pop(task, None) and task.is_logged:
            task.is_logged = False
            log.info("back", part=task.name)


class _Task:
    """The failures of a task since it last ran for long."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_logged = False
        self.reset()

    def reset(self) -> None:
        self.failures = 0
        self.causes: set[tuple[str, str]] = set()


def is_crash(fault: Fault | None) -> bool:
    """Whether a supervisor has logged it."""
    return fault is not None and fault.reason == REASON


async def end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel the tasks and wait until they are over."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
