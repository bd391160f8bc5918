"""The past of a cluster over real sockets: many readers decode a moment once, and scrapes never wait for them."""

import asyncio
import gzip
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from podgpu.assembly.server import open_cluster_pages
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.history.in_memory import InMemoryHistory
from podgpu.history.parted_state import PartedState
from podgpu.history.partitions import BY_NODE
from podgpu.insight import reconclude
from podgpu.model import Cluster, ClusterNode
from podgpu.option.value import Address
from podgpu.serve.cluster.server import ClusterServer
from podgpu.serve.past_pages import MOST_WAITING
from podgpu.sources.replay.recording import Recording
from podgpu.views import json
from podgpu.views.cluster import json as cluster_json
from tests.cluster.nodes import card, fresh, tenant
from tests.patience import until
from tests.serve.cluster.test_server import CLUSTER, StubFeed, get
from tests.serve.rig import connected
from tests.tree import SETTINGS

STEP = 30.0
MOMENTS, READERS = 8, 80


def moment(number: int) -> Cluster:
    """Each moment has another pod."""
    train = fresh("gpu-a", card("GPU-a", tenant(f"ml/train-{number}", 0.5)))
    nodes = (train, *CLUSTER.nodes[1:])
    return reconclude(replace(CLUSTER, taken_at=CLUSTER.taken_at + number * STEP, nodes=nodes), SETTINGS)


class CountedHistory:
    """Counts the nodes that are decoded. Nothing is decoded while `go` is not set."""

    def __init__(self) -> None:
        self.decoded: Counter[str] = Counter()
        self.go = threading.Event()
        self.go.set()
        self.history: InMemoryHistory[Cluster, ClusterNode] = InMemoryHistory(
            replace(BY_NODE, decode_part=self._decode), step=STEP, whole_every=3, most_bytes=4 << 20
        )

    def _decode(self, text: bytes) -> ClusterNode:
        self.go.wait()
        node = BY_NODE.decode_part(text)
        self.decoded[node.name] += 1
        return node


@asynccontextmanager
async def serving(
    counted: CountedHistory, max_requests: int = 2 * READERS, **more: Any
) -> AsyncIterator[ClusterServer]:
    for number in range(MOMENTS):
        await counted.history.keep(moment(number))
    server = ClusterServer(
        StubFeed(CLUSTER),
        open_cluster_pages(Config()),
        max_requests=max_requests,
        max_connections=4 * READERS,
        max_streams=10,
        past=counted.history,
        **more,
    )
    await server.start([Address("127.0.0.1", 0)])
    try:
        yield server
    finally:
        counted.go.set()
        await server.stop()


def document_of(number: int) -> str:
    return f"/api/v1/history?at={moment(number).taken_at + 1}"


async def test_a_moment_is_the_document_of_the_cluster_then_also_compressed() -> None:
    async with serving(CountedHistory()) as server:
        for number in (0, 3, MOMENTS - 1):
            plain = await get(server, document_of(number))
            packed = await get(server, document_of(number), Accept_Encoding="gzip")
            assert plain.body == cluster_json.encode(moment(number))
            assert gzip.decompress(packed.body) == plain.body
            assert plain.headers["etag"] != packed.headers["etag"]
            async with connected(server) as client:
                head = await client.get(document_of(number), "HEAD")
                assert head.headers["content-length"] == str(len(plain.body))
                client.ask(document_of(number), If_None_Match=plain.headers["etag"])
                assert (await client.answer(head_only=True)).status == 304


async def test_the_rows_of_a_moment_are_those_of_the_cluster_then() -> None:
    async with serving(CountedHistory()) as server:
        for kind in json.ROW_KINDS:
            found = await get(server, f"/api/v1/rows?by={kind}&at={moment(4).taken_at}")
            assert found.body == json.rows_document(moment(4), kind)


async def test_eighty_readers_of_one_moment_decode_each_node_once() -> None:
    counted = CountedHistory()
    async with serving(counted) as server:
        answers = await asyncio.gather(*(get(server, document_of(3)) for _ in range(READERS)))
    assert {answer.body for answer in answers} == {cluster_json.encode(moment(3))}
    assert counted.decoded == dict.fromkeys(("gpu-a", "gpu-b", "gpu-c"), 1)


async def test_readers_of_different_moments_each_get_theirs_or_are_asked_to_come_again() -> None:
    counted = CountedHistory()
    async with serving(counted) as server:
        counted.go.clear()
        asked = [asyncio.ensure_future(get(server, document_of(number % MOMENTS))) for number in range(READERS)]
        refused = READERS // MOMENTS * (MOMENTS - MOST_WAITING)
        await until(lambda: sum(task.done() for task in asked) == refused)
        # Scrapes and probes are answered meanwhile.
        assert (await get(server, "/metrics")).status == (await get(server, "/-/healthy")).status == 200
        counted.go.set()
        answers = await asyncio.gather(*asked)
    for number, answer in enumerate(answers):
        if answer.status == 503:
            assert answer.headers["retry-after"] == "1" and "try again" in answer.text
        else:
            assert answer.body == cluster_json.encode(moment(number % MOMENTS))
    assert Counter(answer.status for answer in answers) == {200: READERS - refused, 503: refused}
    assert counted.decoded == dict.fromkeys(("gpu-a", "gpu-b", "gpu-c"), MOST_WAITING)


async def test_readers_of_past_rows_take_no_place_of_a_scrape() -> None:
    counted = CountedHistory()
    async with serving(counted, max_requests=1) as server:
        counted.go.clear()
        asked = asyncio.ensure_future(get(server, f"/api/v1/rows?by=pods&at={moment(1).taken_at}"))
        async with connected(server) as client:
            await until(lambda: server._past._reading != ())  # it is being read
            assert (await client.get("/metrics")).status == 200
            assert (await client.get(f"/api/v1/rows?by=pods&at={moment(2).taken_at}")).status == 503
        counted.go.set()
        assert (await asked).body == json.rows_document(moment(1), "pods")


async def test_a_reader_that_leaves_midway_changes_nothing_for_the_others() -> None:
    counted = CountedHistory()
    async with serving(counted) as server:
        counted.go.clear()
        async with connected(server) as client:
            client.ask(document_of(5))
            await until(lambda: server._past._reading != ())
        counted.go.set()
        assert (await get(server, document_of(5))).body == cluster_json.encode(moment(5))
    assert counted.decoded["gpu-a"] == 1


async def test_a_pod_of_the_past_is_read_from_its_node_alone_once_for_all_who_ask() -> None:
    counted = CountedHistory()
    async with serving(counted) as server:
        answers = await asyncio.gather(*(get(server, "/api/v1/history?pod=ml%2Ftrain-3") for _ in range(READERS)))
        [found] = {answer.body for answer in answers}
        assert msgspec.json.decode(found)["busy"] == [[moment(3).taken_at, 0.5]]
        assert "agent of each node" in msgspec.json.decode(found)["note"]
        assert counted.decoded.keys() == {"gpu-a"}
        assert counted.decoded["gpu-a"] <= READERS * MOMENTS / 8
        assert (await get(server, "/api/v1/history?pod=ml%2Fnobody")).status == 404
        assert "--prometheus.url" in (await get(server, "/api/v1/history?pod=ml%2Ftrain-3&hours=24")).text


async def test_a_recording_of_the_cluster_has_the_documents_of_its_moments(tmp_path: Path) -> None:
    async with serving(CountedHistory()) as server:
        answer = await get(server, f"/api/v1/recording?at={moment(3).taken_at}&minutes=1")
        assert server._past._reading == ()  # what was read is not held, or it could not be forgotten
    (tmp_path / "incident").write_bytes(answer.body)
    recording = Recording(tmp_path / "incident")
    assert [recording.document(number) for number in range(3)] == [
        cluster_json.encode(moment(number)) for number in (2, 3, 4)
    ]


async def test_a_recording_waits_in_line_like_any_moment() -> None:
    counted = CountedHistory()
    async with serving(counted) as server:
        counted.go.clear()
        asked = [asyncio.ensure_future(get(server, document_of(number))) for number in range(MOST_WAITING)]
        await until(lambda: len(server._past._pages._making.keys) == MOST_WAITING)
        assert (await get(server, f"/api/v1/recording?at={moment(5).taken_at}")).status == 503
        counted.go.set()
        await asyncio.gather(*asked)


async def test_a_moment_that_is_no_longer_kept_comes_from_the_store_once_for_all_who_ask() -> None:
    asked: list[float] = []
    long_ago = CLUSTER.taken_at - 86_400.0

    async def stored(at: float) -> PartedState[Cluster, ClusterNode] | None:
        asked.append(at)
        if at < long_ago:
            raise UserError("store_late: no answer in time")
        then = replace(moment(0), taken_at=at)
        return (
            PartedState(at, lambda: (replace(then, nodes=()), iter(then.nodes)), BY_NODE.join) if at % 2 == 0 else None
        )

    async with serving(CountedHistory(), stored_moment=stored) as server:
        path = f"/api/v1/history?at={long_ago}"
        answers = await asyncio.gather(*(get(server, path) for _ in range(READERS)))
        assert {answer.body for answer in answers} == {cluster_json.encode(replace(moment(0), taken_at=long_ago))}
        assert asked == [long_ago]
        rows = await get(server, f"/api/v1/rows?by=pods&at={long_ago}")
        assert b"train-0" in rows.body
        nothing = await get(server, f"/api/v1/history?at={long_ago + 1}")
        assert (nothing.status, "nothing is kept of that time" in nothing.text) == (404, True)
        late = await get(server, f"/api/v1/history?at={long_ago - 2}")
        assert (late.status, "store_late" in late.text) == (502, True)
        # A file is only made of what is kept, and the future is in no store.
        assert (await get(server, f"/api/v1/recording?at={long_ago}")).status == 404
        assert (await get(server, f"/api/v1/history?at={time.time() + 1e6}")).status == 404
        assert asked == [long_ago, long_ago, long_ago + 1, long_ago - 2]
        assert msgspec.json.decode((await get(server, "/api/v1/timeline")).body)["is_stored"] is True


async def test_a_server_that_stops_ends_what_is_being_read() -> None:
    counted = CountedHistory()
    async with serving(counted) as server:
        counted.go.clear()
        async with connected(server) as client:
            client.ask(document_of(5))
            await until(lambda: server._past._reading != ())
            stopping = asyncio.ensure_future(server.stop())
            await asyncio.sleep(0)
            counted.go.set()
            await stopping
    assert sum(counted.decoded.values()) <= 1
