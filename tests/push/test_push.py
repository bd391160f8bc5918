"""The push to a real HTTP endpoint: what arrives, and what a collector in trouble does to the agent."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from podgpu.agent.loop import Agent
from podgpu.feed import SnapshotFeed
from podgpu.model import Card, Gpu, Reading, Report, Snapshot
from podgpu.push.environment import Destination
from podgpu.push.loop import Push
from podgpu.views.otlp import encode, rejection
from tests.fakeapi.certificate import certificate
from tests.patience import PATIENCE, until
from tests.push.fake_collector import FakeCollector
from tests.tree import SETTINGS


def taken(watts: float) -> Snapshot:
    card = Card(gpu=Gpu(uuid="GPU-1", index=0), readings=(Reading("power_watts", watts),))
    return Snapshot(node="n", taken_at=time.time(), interval_seconds=1.0, version="1", cards=(card,))


def watts(collector: FakeCollector) -> list[float]:
    return [value for (name, _), value in collector.points.items() if name == "hw.power"]


def made(feed: SnapshotFeed | Agent, url: str, **options: Any) -> Push:
    to = Destination(**{"url": f"{url}/v1/metrics", "interval": 0.2, "timeout": PATIENCE, **options})
    written = partial(encode, resource=to.resource, started_at=1.0, series_limit=1000)
    return Push(feed, to, written, rejection, first_pause=0.02)


@asynccontextmanager
async def pushing(feed: SnapshotFeed, url: str, **options: Any) -> AsyncIterator[Push]:
    push = made(feed, url, **options)
    task = asyncio.create_task(push.run())
    await asyncio.sleep(0)  # it waits for the next snapshot now
    try:
        yield push
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await push.close()


async def test_the_newest_snapshot_arrives_once_per_interval() -> None:
    feed = SnapshotFeed(taken(1.0))
    async with FakeCollector() as collector, pushing(feed, collector.url) as push:
        assert push.status().fault is not None  # starting
        feed.publish(taken(72.5))
        await until(lambda: push.status().up)
        assert watts(collector) == [72.5]
        published_at = time.monotonic()
        feed.publish(taken(73.0))
        feed.publish(taken(74.0))
        # Until its answer was heard, the end would send it again.
        await until(lambda: time.monotonic() - (push.status().age_seconds or 0.0) > published_at)
        assert watts(collector) == [74.0]
        assert (push.status().up, push.errors) == (True, {})
    assert collector.paths == ["/v1/metrics"] * 2
    assert collector.headers[0]["Content-Type"] == "application/x-protobuf"


async def test_a_snapshot_is_not_pushed_twice() -> None:
    feed = SnapshotFeed(taken(1.0))
    async with FakeCollector() as collector, pushing(feed, collector.url, interval=0.05):
        feed.publish(taken(2.0))
        await until(lambda: collector.requests)
        await asyncio.sleep(0.3)
        assert len(collector.requests) == 1


async def test_what_was_read_since_the_last_push_is_pushed_at_the_end() -> None:
    feed = SnapshotFeed(taken(1.0))
    async with FakeCollector() as collector:
        async with pushing(feed, collector.url, interval=60.0):
            feed.publish(taken(2.0))
            await until(lambda: collector.requests)
            feed.publish(taken(3.0))
        assert (len(collector.requests), watts(collector)) == (2, [3.0])
        async with pushing(feed, collector.url, interval=60.0):
            pass  # nothing new
        assert len(collector.requests) == 2


async def test_a_silent_collector_does_not_hold_up_the_end() -> None:
    feed = SnapshotFeed(taken(1.0))
    ages = 2 * PATIENCE
    async with FakeCollector(delay=ages) as collector:
        async with asyncio.timeout(PATIENCE), pushing(feed, collector.url, interval=ages, timeout=ages):
            feed.publish(taken(2.0))
            await until(lambda: collector.paths)
        assert len(collector.paths) == 2


async def test_headers_and_compression_are_as_asked() -> None:
    feed = SnapshotFeed(taken(1.0))
    options = {"headers": {"api-key": "k"}, "gzip": True, "resource": {"service.name": "gpus"}}
    async with FakeCollector() as collector, pushing(feed, collector.url, **options):
        feed.publish(taken(72.5))
        await until(lambda: collector.requests)
    assert watts(collector) == [72.5]
    assert collector.headers[0]["api-key"] == "k"
    assert collector.headers[0]["Content-Encoding"] == "gzip"


async def test_a_collector_is_trusted_by_its_authority_and_sees_the_clients_certificate(
    tmp_path: Path,
) -> None:
    cert, context = certificate(tmp_path)
    context.load_verify_locations(cert)
    context.verify_mode = ssl.CERT_REQUIRED
    feed = SnapshotFeed(taken(1.0))
    files = {"ca_file": cert, "cert_file": cert, "key_file": tmp_path / "key.pem"}
    async with FakeCollector(tls=context) as collector:
        async with pushing(feed, collector.url, headers={"api-key": "secret"}) as push:
            feed.publish(taken(2.0))
            await until(lambda: push.errors)
            assert set(push.errors) == {"tls"} and not collector.headers
        async with pushing(feed, collector.url, **files) as push:
            feed.publish(taken(3.0))
            await until(lambda: push.status().up)
        assert watts(collector) == [3.0]


async def test_an_answer_without_a_body_is_a_yes() -> None:
    feed = SnapshotFeed(taken(1.0))
    async with FakeCollector(answers=[(202, {})]) as collector, pushing(feed, collector.url) as push:
        feed.publish(taken(2.0))
        await until(lambda: push.status().up)
        assert not push.errors


async def test_a_busy_collector_is_asked_again_with_the_same() -> None:
    feed = SnapshotFeed(taken(1.0))
    busy = [(503, {}), (429, {"Retry-After": "0"}), (502, {})]
    async with (
        FakeCollector(answers=list(busy)) as collector,
        pushing(feed, collector.url, interval=30) as push,
    ):
        feed.publish(taken(72.5))
        await until(lambda: collector.requests)
        await until(lambda: push.status().up)
        assert (len(collector.paths), push.errors) == (4, {"unreachable": 2, "throttled": 1})


async def test_a_pause_the_collector_asks_for_is_kept() -> None:
    feed = SnapshotFeed(taken(1.0))
    answers: list[tuple[int, dict[str, str]]] = [(503, {"Retry-After": "60"})]
    async with FakeCollector(answers=list(answers)) as collector, pushing(feed, collector.url, interval=30):
        feed.publish(taken(72.5))
        await until(lambda: collector.paths)
        await asyncio.sleep(0.3)
        assert len(collector.paths) == 1


async def test_a_pause_the_collector_asks_for_may_be_longer_than_the_interval() -> None:
    feed = SnapshotFeed(taken(1.0))
    answers: list[tuple[int, dict[str, str]]] = [(429, {"Retry-After": "60"})]
    async with (
        FakeCollector(answers=list(answers)) as collector,
        pushing(feed, collector.url, interval=0.05) as push,
    ):
        feed.publish(taken(72.5))
        await until(lambda: push.errors)
        feed.publish(taken(73.0))
        await asyncio.sleep(0.3)
        assert len(collector.paths) == 1


@pytest.mark.parametrize(
    ("status", "reason"), [(400, "refused"), (401, "unauthorized"), (302, "refused"), (413, "too_large")]
)
async def test_a_refusal_waits_for_the_next_interval(status: int, reason: str) -> None:
    feed = SnapshotFeed(taken(1.0))
    answers = [(status, {"Location": "/"})]
    async with FakeCollector(answers=list(answers)) as collector, pushing(feed, collector.url) as push:
        feed.publish(taken(1.0))
        await until(lambda: push.errors)
        await asyncio.sleep(0.1)
        assert (len(collector.paths), push.errors) == (1, {reason: 1})
        fault = push.status().fault
        assert fault and (fault.reason, fault.detail) == (reason, f"HTTP {status}")
        feed.publish(taken(2.0))
        await until(lambda: collector.requests)


async def test_what_a_collector_rejects_is_shown() -> None:
    feed = SnapshotFeed(taken(1.0))
    async with FakeCollector(rejects=3) as collector, pushing(feed, collector.url) as push:
        feed.publish(taken(2.0))
        await until(lambda: push.errors)
        fault = push.status().fault
        assert fault and (fault.reason, fault.detail) == ("rejected", "3 series rejected: too old")


async def test_a_slow_collector_is_given_up_and_a_newer_snapshot_takes_its_place() -> None:
    feed = SnapshotFeed(taken(1.0))
    async with FakeCollector(delay=5.0) as collector, pushing(feed, collector.url, timeout=0.1) as push:
        feed.publish(taken(2.0))
        await until(lambda: push.errors["deadline"])
        collector.delay = 0.0
        feed.publish(taken(3.0))
        await until(lambda: push.status().up)
        assert watts(collector)[-1] in (2.0, 3.0)
        await until(lambda: watts(collector) == [3.0])


class Steady:
    name, demo = "still", False

    async def read(self) -> Report:
        return Report()

    async def release(self, _: float) -> bool:
        return True

    async def close(self) -> None:
        return None


async def test_a_collector_that_is_down_and_comes_back_is_a_part_of_the_snapshot() -> None:
    """The agent goes on reading and publishing; only the state of the push changes."""
    async with FakeCollector() as first:
        port = first.port
    agent = Agent(Steady(), node="n", interval=0.05, settings=SETTINGS)
    agent.attach(made(agent, f"http://127.0.0.1:{port}"))
    loop = asyncio.create_task(agent.run())

    def state() -> tuple[bool, str]:
        found = [part for part in agent.snapshot.parts if part.name == "otlp"]
        return (found[0].up, found[0].fault.reason if found[0].fault else "") if found else (False, "")

    try:
        await until(lambda: state() == (False, "unreachable"))
        seen = agent.snapshot
        async with asyncio.timeout(PATIENCE):
            assert await agent.changed(seen) is not seen
        counted = {(error.source, error.reason): error.count for error in agent.snapshot.errors}
        assert counted["otlp", "unreachable"] >= 1
        async with FakeCollector(port=port) as second:
            await until(lambda: state() == (True, ""))
            assert second.requests
    finally:
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)
        await agent.close()
