"""Long tasks that fail, and come back."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from podgpu.agent.loop import Agent
from podgpu.model import Fault, PartStatus, Report
from podgpu.option.value import Address
from podgpu.serve.server import NodeServer
from podgpu.supervise import Supervisor, brief, end
from tests.patience import PATIENCE
from tests.serve.rig import Client, connected
from tests.tree import SETTINGS


class Work:
    """Fails `times` times, then works until it is cancelled."""

    def __init__(self, times: int, errors: tuple[Exception, ...] = (ValueError("bad"),)) -> None:
        self.times = times
        self.errors = errors
        self.runs = 0
        self.works = asyncio.Event()

    async def __call__(self) -> None:
        self.runs += 1
        if self.runs <= self.times:
            raise self.errors[self.runs % len(self.errors)]
        self.works.set()
        await asyncio.Event().wait()


def quick() -> Supervisor:
    return Supervisor(first_pause=0.001, longest_pause=0.004)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.002)


PART = PartStatus(name="part", up=True)
OTHER = PartStatus(name="other", up=True)


async def test_ten_failures_are_counted_logged_once_and_over_when_the_cause_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "podgpu")
    seen = []
    supervisor = Supervisor(
        lambda: seen.append(supervisor.shown((PART, OTHER))), first_pause=0.001, longest_pause=0.004
    )
    work = Work(10)
    task = supervisor.supervise("part", work)
    async with asyncio.timeout(PATIENCE):
        await work.works.wait()
    await until(lambda: supervisor.shown((PART,)) == (PART,))
    await end(task)
    assert [[part.up for part in parts] for parts in seen] == [[False, True]] * 10
    assert seen[0][0].fault == Fault(reason="crashed", detail="ValueError('bad')")
    assert supervisor.errors == {("part", "crashed"): 10}
    words = [record.message for record in caplog.records if record.name == "podgpu"]
    assert words == ["a part crashed; it is started again", "back"]


async def test_pauses_grow() -> None:
    supervisor = Supervisor(first_pause=0.01, longest_pause=0.04)
    pauses = []

    async def fails() -> None:
        pauses.append(asyncio.get_running_loop().time())
        raise ValueError

    task = supervisor.supervise("part", fails)
    await until(lambda: len(pauses) >= 5)
    await end(task)
    gaps = [after - before for before, after in pairwise(pauses)]
    assert all(gap >= least for gap, least in zip(gaps, (0.0099, 0.0199, 0.0399, 0.0399), strict=False))


async def test_each_cause_has_a_line(caplog: pytest.LogCaptureFixture) -> None:
    supervisor, work = quick(), Work(9, (ValueError("one"), KeyError("two"), ValueError("three")))
    task = supervisor.supervise("part", work)
    async with asyncio.timeout(PATIENCE):
        await work.works.wait()
    await end(task)
    crashes = [record for record in caplog.records if "crashed" in record.message]
    assert len(crashes) == 2, "the words of an error may be others each time"


async def test_a_task_without_a_part_becomes_one_that_stays() -> None:
    supervisor, work = quick(), Work(3)
    assert supervisor.shown((OTHER,)) == (OTHER,)
    task = supervisor.supervise("hidden", work)
    await until(lambda: supervisor.errors)
    async with asyncio.timeout(PATIENCE):
        await work.works.wait()
    await until(lambda: supervisor.shown(()) == (PartStatus(name="hidden", up=True),))
    await end(task)


async def test_showing_a_failure_may_fail_too(caplog: pytest.LogCaptureFixture) -> None:
    def failed() -> None:
        raise ZeroDivisionError

    work = Work(2)
    supervisor = Supervisor(failed, first_pause=0.001)
    task = supervisor.supervise("part", work)
    async with asyncio.timeout(PATIENCE):
        await work.works.wait()
    await end(task)
    assert "a failure cannot be shown; please report this" in caplog.text


async def test_one_that_ends_is_not_started_again() -> None:
    supervisor, runs = quick(), []

    async def ends() -> None:
        runs.append(1)

    await supervisor.run([("part", ends), ("part", ends)])
    assert len(runs) == 2


async def test_the_end_of_a_group_is_the_end_of_all() -> None:
    supervisor, work = quick(), Work(0)
    group = brief(supervisor.run([("part", work), ("other", work)]))
    await until(lambda: work.runs == 2)
    before = len(asyncio.all_tasks())
    await end(group)
    assert len(asyncio.all_tasks()) == before - 3


class Source:
    name = "nvml"
    demo = False

    async def read(self) -> Report:
        return Report()

    async def release(self, seconds: float) -> bool:
        return True

    async def close(self) -> None: ...


class Companion:
    """A part that fails for as long as it is told to."""

    name = "otlp"

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter()
        self.is_broken = False
        self.has_state = True

    async def run(self) -> None:
        if self.is_broken:
            raise RuntimeError("no luck")
        await asyncio.Event().wait()

    def status(self) -> PartStatus:
        if not self.has_state:
            raise LookupError("no state")
        return PartStatus(name=self.name, up=True)

    async def close(self) -> None: ...


@asynccontextmanager
async def served(agent: Agent) -> AsyncIterator[Client]:
    server = NodeServer(
        agent,
        series_limit=1000,
        max_requests=10,
        max_connections=10,
        max_streams=2,
        supervisor=agent.supervisor,
    )
    await server.start([Address("127.0.0.1", 0)])
    running = agent.supervisor.supervise(agent.name, agent.run)
    try:
        async with connected(server) as client:
            yield client
    finally:
        await end(running)
        await server.stop()
        await agent.close()


async def page_has(client: Client, series: str, check: Callable[[float], bool]) -> None:
    """Wait for a value on the page."""
    async with asyncio.timeout(PATIENCE):
        while True:
            page = (await client.get("/metrics")).text
            found = [line for line in page.splitlines() if line.startswith(series)]
            if found and check(float(found[0].rpartition(" ")[2])):
                return
            await asyncio.sleep(0.01)


def agent_with(companion: Companion) -> Agent:
    agent = Agent(Source(), node="n", interval=0.02, settings=SETTINGS)
    agent.supervisor.first_pause, agent.supervisor.longest_pause = 0.002, 0.01
    agent.attach(companion)
    return agent


async def test_on_the_page_a_task_that_fails_ten_times_is_down_counted_and_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    companion = Companion()
    companion.is_broken = True
    count = 'podgpu_errors_total{node="n",source="otlp",reason="crashed"}'
    up = 'podgpu_source_up{node="n",source="otlp"}'
    async with served(agent_with(companion)) as client:
        await page_has(client, count, lambda value: value >= 10)
        await page_has(client, up, lambda value: value == 0)
        companion.is_broken = False
        await page_has(client, up, lambda value: value == 1)
        await page_has(client, count, lambda value: value >= 10)
    warnings = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert warnings == ["a part crashed; it is started again"]


async def test_a_reading_loop_that_fails_is_shown_at_once_and_goes_on() -> None:
    """A defect in the agent's own loop must not leave a page that stands still."""
    companion = Companion()
    up = 'podgpu_source_up{node="n",source="nvml"}'
    async with served(agent_with(companion)) as client:
        await page_has(client, up, lambda value: value == 1)
        companion.has_state = False
        await page_has(client, up, lambda value: value == 0)
        companion.has_state = True
        await page_has(client, up, lambda value: value == 1)
        count = 'podgpu_errors_total{node="n",source="nvml",reason="crashed"}'
        await page_has(client, count, lambda value: value >= 1)
