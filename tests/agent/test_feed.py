"""The newest snapshot: who waits gets the next one, who asks changes nothing, and what is old goes by itself."""

import asyncio

from podgpu.agent.attribution import Attribution
from podgpu.agent.loop import STALE_INTERVALS, Agent
from podgpu.feed import SnapshotFeed
from podgpu.model import Device, Fault, Gpu, PartStatus, Report, Snapshot
from tests.agent.stage import StillPods
from tests.patience import PATIENCE
from tests.tree import SETTINGS

INTERVAL = 0.1


def taken(at: float) -> Snapshot:
    return Snapshot(node="n", taken_at=at, interval_seconds=INTERVAL, version="")


async def test_whoever_waits_gets_the_next_snapshot() -> None:
    first, second = taken(1.0), taken(2.0)
    feed = SnapshotFeed(first)
    waiting = [asyncio.create_task(feed.changed(first)) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    feed.publish(second)
    assert [await asyncio.wait_for(task, PATIENCE) is second for task in waiting] == [True] * 3


async def test_whoever_is_slow_misses_those_in_between() -> None:
    first, second, third = taken(1.0), taken(2.0), taken(3.0)
    feed = SnapshotFeed(first)
    feed.publish(second)
    feed.publish(third)
    assert await asyncio.wait_for(feed.changed(first), PATIENCE) is third
    assert await asyncio.wait_for(feed.changed(second), PATIENCE) is third


async def test_one_that_has_been_seen_is_not_given_again() -> None:
    only = taken(1.0)
    waiting = asyncio.create_task(SnapshotFeed(only).changed(only))
    done, _ = await asyncio.wait({waiting}, timeout=0.05)
    assert not done
    waiting.cancel()


async def test_an_equal_snapshot_of_a_new_cycle_is_a_new_one() -> None:
    first, same = taken(1.0), taken(1.0)
    feed = SnapshotFeed(first)
    feed.publish(same)
    assert await asyncio.wait_for(feed.changed(first), PATIENCE) is same


class Hangs:
    """A source that answers twice, with an error it counted each time, and then never again."""

    name, demo = "nvml", False

    def __init__(self) -> None:
        self.asked = 0

    async def read(self) -> Report:
        self.asked += 1
        if self.asked > 2:
            await asyncio.Event().wait()
        return Report(devices=(Device(gpu=Gpu(uuid="GPU-1", index=0)),), errors={"gpm_sample": 1})

    async def release(self, seconds: float) -> bool:
        return True

    async def close(self) -> None:
        return


def agent_over(source: Hangs) -> Agent:
    attribution = Attribution(interval=INTERVAL, pod_sources=[StillPods(())])
    return Agent(source, node="n", interval=INTERVAL, settings=SETTINGS, attribution=attribution)


async def test_asking_computes_nothing() -> None:
    agent = agent_over(Hangs())
    before = agent.snapshot
    assert agent.snapshot is before
    await agent.cycle()
    after = agent.snapshot
    assert after is not before
    assert agent.snapshot is after
    await agent.close()


async def test_what_grew_too_old_goes_without_anybody_asking() -> None:
    """Seen by one who only waits. Its parts and its counts stay."""
    agent, loop = agent_over(Hangs()), asyncio.get_running_loop()
    await agent.cycle()
    began = loop.time()
    await agent.cycle()
    good, hanging = agent.snapshot, asyncio.create_task(agent.cycle())
    seen = await asyncio.wait_for(agent.changed(good), PATIENCE)
    age = loop.time() - began
    hanging.cancel()
    await agent.close()
    assert good.cards and not seen.cards
    assert age > (STALE_INTERVALS - 0.5) * INTERVAL
    source, pods = seen.parts
    assert source.fault and (source.name, source.up, source.fault.reason) == ("nvml", False, "stale")
    assert source.age_seconds is not None and source.age_seconds >= (STALE_INTERVALS - 0.5) * INTERVAL
    assert (pods.name, pods.up) == ("pods", True)
    assert [(error.source, error.reason, error.count) for error in seen.errors] == [("nvml", "gpm_sample", 2)]


async def test_a_part_that_is_down_stays_a_problem_when_readings_grow_old() -> None:
    down = StillPods(())
    down.status = lambda: PartStatus(name="pods", up=False, fault=Fault(reason="forbidden"))  # type: ignore[method-assign]
    attribution = Attribution(interval=INTERVAL, pod_sources=[down])
    agent = Agent(Hangs(), node="n", interval=INTERVAL, settings=SETTINGS, attribution=attribution)
    await agent.cycle()
    assert agent.snapshot.cards
    seen = await asyncio.wait_for(agent.changed(agent.snapshot), PATIENCE)
    await agent.close()
    assert seen.insight
    told = " ".join(problem.text for problem in seen.insight.problems)
    assert "nvml: stale" in told and "pods: forbidden" in told


async def test_a_closed_agent_publishes_nothing_more() -> None:
    agent = agent_over(Hangs())
    await agent.cycle()
    last = agent.snapshot
    await agent.close()
    await asyncio.sleep((STALE_INTERVALS + 1) * INTERVAL)
    assert agent.snapshot is last
