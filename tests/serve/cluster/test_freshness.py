"""Pages of a cluster that cannot be made any more are not served as if they could."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from podgpu.config import Config
from podgpu.feed import Feed
from podgpu.model import Cluster, Snapshot
from podgpu.option.value import Address
from podgpu.serve.cluster.server import ClusterServer
from podgpu.serve.cluster.views import ClusterListView, ClusterPageRegistry, register_cluster_pages
from podgpu.supervise import Supervisor
from tests.cluster.nodes import fresh
from tests.patience import PATIENCE
from tests.patience import until as wait
from tests.serve.rig import Answer, connected

INTERVAL = 0.1


class Beating(Feed[Cluster]):
    """A cluster that changes all the time, for as long as it lives."""

    ready = True
    interval = INTERVAL

    def __init__(self) -> None:
        self.lives = True
        self.at = time.monotonic()
        super().__init__(self._next(0))

    @property
    def cluster(self) -> Cluster:
        return self.newest

    @property
    def seconds_behind(self) -> float:
        return time.monotonic() - self.at

    async def full(self, name: str) -> Snapshot:
        raise LookupError(name)

    async def run(self) -> None:
        number = 0
        while True:
            await asyncio.sleep(INTERVAL / 4)
            if self.lives:
                number += 1
                self.at = time.monotonic()
                self.publish(self._next(number))

    def _next(self, number: int) -> Cluster:
        return Cluster(taken_at=float(number), version="1", nodes=(fresh("a"),))


class Frail:
    """The frame of a document that cannot be written for a while."""

    is_broken = False

    def __call__(self, cluster: Cluster) -> tuple[bytes, bytes]:
        if self.is_broken:
            raise OverflowError("too large")
        return f"[{cluster.taken_at} ".encode(), b"]"


@asynccontextmanager
async def serving(feed: Beating, frail: Frail, supervisor: Supervisor) -> AsyncIterator[ClusterServer]:
    registry = register_cluster_pages(Config().of, 20_000)
    view = ClusterListView(lambda node: node.name.encode(), frail, separator=b",", content_type="text/plain")
    server = ClusterServer(
        feed,
        ClusterPageRegistry({**registry.views, "/frail": view}),
        max_requests=10,
        max_connections=10,
        max_streams=1,
        supervisor=supervisor,
    )
    await server.start([Address("127.0.0.1", 0)])
    beating = asyncio.get_running_loop().create_task(feed.run())
    try:
        yield server
    finally:
        beating.cancel()
        await server.stop()


async def until(server: ClusterServer, path: str, check: Callable[[Answer], bool]) -> Answer:
    async with asyncio.timeout(PATIENCE):
        while True:
            async with connected(server) as client:
                found = await client.get(path)
            if check(found):
                return found
            await asyncio.sleep(0.01)


def is_refused(page: Answer, words: str) -> bool:
    return page.status == 503 and words in page.text


async def test_a_page_that_cannot_be_made_is_a_503_and_the_others_are_fresh(
    caplog: pytest.LogCaptureFixture,
) -> None:
    feed, frail, supervisor = Beating(), Frail(), Supervisor(first_pause=0.01, longest_pause=0.05)
    async with serving(feed, frail, supervisor) as server:
        await until(server, "/frail", lambda page: page.status == 200)
        frail.is_broken = True
        await until(server, "/frail", lambda page: is_refused(page, "this page could not be rendered for"))
        seen = (await until(server, "/api/v1/cluster", lambda page: page.status == 200)).body
        await until(server, "/api/v1/cluster", lambda page: page.status == 200 and page.body != seen)
        await wait(lambda: not supervisor.shown(())[0].up)
        assert supervisor.shown(())[0].name == "pages"
        frail.is_broken = False
        await until(server, "/frail", lambda page: page.status == 200)
        await wait(lambda: supervisor.shown(())[0].up)
    assert len([record for record in caplog.records if "crashed" in record.message]) == 1


async def test_a_loop_that_stands_still_makes_every_page_a_503() -> None:
    feed = Beating()
    async with serving(feed, Frail(), Supervisor()) as server:
        for path in ("/metrics", "/api/v1/cluster", "/"):
            await until(server, path, lambda page: page.status == 200)
        feed.lives = False
        for path in ("/metrics", "/api/v1/cluster", "/"):
            await until(server, path, lambda page: is_refused(page, "the nodes were not read for"))
        feed.lives = True
        await until(server, "/metrics", lambda page: page.status == 200)
