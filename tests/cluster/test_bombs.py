"""Small answers that become very large: refused before they take memory, and while probes are answered.

What is counted is bytes that came out of gzip, and rows that were decoded.
"""

import asyncio
import gzip
import re
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec
import pytest
from aiohttp import web

from podgpu.assembly.cluster import open_cluster
from podgpu.cluster import federation
from podgpu.cluster.store import response
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.nodes import read_nodes
from podgpu.cluster.store.options import StoreOptions
from podgpu.cluster.store.response import DecodeBudget, StoreFault
from podgpu.config.precedence import load
from podgpu.model import Cluster
from podgpu.net.client import BYTES_OF_ANY_RATIO, MOST_RATIO, HttpAnswer
from podgpu.net.connection import HttpFault
from podgpu.views.cluster.json import encode
from tests.cluster.store.stub import StubStore, serving
from tests.patience import PATIENCE, PODGPU, until

MIB = 1 << 20
GZIP = {"Content-Encoding": "gzip"}
VECTOR = b'{"status":"success","data":{"resultType":"vector","result":['
MATRIX = b'{"status":"success","data":{"resultType":"matrix","result":['
CLUSTER = encode(Cluster(taken_at=1_700_000_000.0, version="1.0"))


def packed(start: bytes, again: bytes, end: bytes, size: int) -> bytes:
    """gzip of a document of about this size."""
    return gzip.compress(start + again * (size // len(again)) + end, 6)


def samples(size: int) -> bytes:
    return packed(MATRIX + b'{"metric":{},"values":[', b'[1,"1"],', b'[1,"1"]]}]}}', size)


def rows(size: int) -> bytes:
    return packed(VECTOR, b'{"metric":{},"value":[1,"1"]},', b'{"metric":{}}]}}', size)


@asynccontextmanager
async def asked(body: bytes) -> AsyncIterator[Store]:
    async with serving(StubStore(body=body, headers=GZIP)) as stub:
        store = Store(StoreOptions(url=stub.url, timeout=PATIENCE))
        try:
            yield store
        finally:
            await store.close()


def test_a_bomb_is_unpacked_no_further_than_its_ratio_allows() -> None:
    bomb = gzip.compress(b"0" * (64 * MIB))
    with pytest.raises(HttpFault, match=f"more than {MOST_RATIO} times as much") as caught:
        HttpAnswer(200, {"content-encoding": "gzip"}, bomb).plain(1 << 40)
    assert caught.value.reason == "too_large"
    # It stops at the first piece beyond the bytes of which none is judged: not even a quarter of it was unpacked.
    assert int(caught.value.detail.split()[0]) <= len(bomb) * 2 * BYTES_OF_ANY_RATIO / (64 * MIB) / 1024


def test_what_is_usual_is_unpacked_whole() -> None:
    numbers = b"".join(b'[%d.5,"%d"],' % (1_794_700_000 + each * 15, each % 7) for each in range(800_000))
    assert len(numbers) > BYTES_OF_ANY_RATIO
    answer = HttpAnswer(200, {"content-encoding": "gzip"}, gzip.compress(numbers, 1))
    assert answer.plain(len(numbers)) == numbers


async def test_a_store_that_sends_a_bomb_is_told_apart_and_said_what_to_do_about() -> None:
    async with asked(samples(64 * MIB)) as store:
        with pytest.raises(
            StoreFault, match=r"of gzip become more than.*--prometheus\.selector.*--prometheus\.url"
        ) as got:
            await store.series("up[5m]", 1.0)
    assert got.value.reason == "store_too_large"


@pytest.mark.parametrize(
    ("body", "said"),
    [(samples(7 * MIB), "a series of more than 4 MiB"), (rows(7 * MIB), "more labels and samples")],
)
async def test_many_small_objects_are_counted_before_they_are_decoded(
    body: bytes, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response, "MOST_PARTS", 10_000_000 if "series" in said else 1_000_000)
    async with asked(body) as store:
        with pytest.raises(StoreFault, match=said) as caught:
            await (store.series("up[5m]", 1.0) if "series" in said else store.points("up", 1.0))
    assert caught.value.reason in response.ANSWERABLE_IN_PARTS


async def test_answers_that_are_held_together_share_a_budget() -> None:
    body = rows(MIB)
    budget = DecodeBudget(3 * (gzip.decompress(body).count(b",") + gzip.decompress(body).count(b"{")))
    async with asked(body) as store:
        for _ in range(3):
            await store.points("up", 1.0, budget)
        with pytest.raises(StoreFault, match="more labels and samples"):
            await store.points("up", 1.0, budget)
        await store.points("up", 1.0)  # alone


class EveryAnswerIsLarge(StubStore):
    """Answers with as many rows to whatever it is asked."""

    async def handle(self, request: web.BaseRequest) -> web.Response:
        query = str((await request.post())["query"])
        start = MATRIX if query.endswith("]") else VECTOR
        return web.Response(body=packed(start, b'{"metric":{}},', b'{"metric":{}}]}}', MIB // 4), headers=GZIP)


@pytest.mark.parametrize(("times", "is_read"), [(6.5, True), (2.5, False)])
async def test_all_nodes_are_read_with_one_budget(times: float, is_read: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are six answers, each of which alone would be decoded."""
    parts = MIB // 4 // len(b'{"metric":{}},') * 3
    monkeypatch.setattr(response, "MOST_PARTS", int(times * parts))
    async with serving(EveryAnswerIsLarge()) as stub:
        store = Store(StoreOptions(url=stub.url, timeout=PATIENCE))
        try:
            if is_read:
                assert not (await read_nodes(store, 1.0)).nodes
            else:
                with pytest.raises(StoreFault, match="more labels and samples"):
                    await read_nodes(store, 1.0)
        finally:
            await store.close()


class Counted:
    """Rows, of which the second waits until it is let go."""

    def __init__(self) -> None:
        self.taken = 0
        self.began, self.goes_on = threading.Event(), threading.Event()

    def __iter__(self) -> Iterator[msgspec.Raw]:
        while self.taken < 1000:
            self.taken += 1
            if self.taken == 2:
                self.began.set()
                self.goes_on.wait(PATIENCE)
            yield msgspec.Raw(b"{}")


async def test_a_thread_that_decodes_ends_when_nobody_waits() -> None:
    store, seen, budget = Store(StoreOptions(url="http://127.0.0.1:1")), Counted(), DecodeBudget()
    done = threading.Event()

    def read(_status: int, _body: bytes, budget: DecodeBudget) -> tuple[list[msgspec.Raw], list[response.Notice]]:
        try:
            return list(budget.rows(seen)), []
        finally:
            done.set()

    decoding = asyncio.ensure_future(store._decoded(HttpAnswer(200, {}, b""), read, budget))
    await until(seen.began.is_set)
    decoding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await decoding
    seen.goes_on.set()
    await until(done.is_set)
    assert seen.taken == 2
    await store.close()


def document(rows: bytes = b"", pending: bytes = b"") -> bytes:
    """The document of a cluster with these rows and waiting pods."""
    found = CLUSTER.replace(b'"nodes":[]', b'"nodes":[%s]' % rows).replace(b'"pending":[]', b'"pending":[%s]' % pending)
    assert len(found) == len(CLUSTER) + len(rows) + len(pending)
    return found


def many(row: bytes, size: int) -> bytes:
    return row + (b"," + row) * (size // (len(row) + 1))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (document(many(b'{"name":"a","state":"fresh"}', 96 * MIB)), "times as much"),
        (document(many(b"0", 7 * MIB)), "million fields"),
        (document(many(b'{"name":"a","state":"fresh"}', 7 * MIB)), "nodes; at most 20000"),
        (document(pending=many(b'{"namespace":"a","name":"b"}', 7 * MIB)), "MiB beside its nodes"),
        (b"[" * (7 * MIB), "not a document of a podgpu cluster"),
    ],
    ids=["bomb", "elements", "nodes", "pending", "nested"],
)
async def test_a_cluster_that_sends_a_bomb_is_refused_before_it_is_decoded(
    body: bytes, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(federation, "MOST_PARTS", 3_000_000)
    monkeypatch.setattr(federation, "MOST_HEAD_BYTES", 6 * MIB)
    async with serving(StubStore(body=gzip.compress(body, 6), headers=GZIP)) as stub:
        config = load({"cluster_upstreams": [f"east={stub.url}"], "cluster_interval": ["1s"]}, {})
        opened = open_cluster(config)
        try:
            await until(lambda: opened.loop.ready)
            (part,) = opened.loop.cluster.parts
            assert part.fault is not None
            assert said in part.fault.detail
            assert part.fault.reason == ("garbage" if "not a document" in said else "too_large")
            assert not opened.loop.cluster.nodes
        finally:
            await opened.close()


async def test_a_row_as_large_as_no_agent_sends_fails_alone() -> None:
    large = b'{"name":"large","state":"fresh","detail":"%s"}' % (b"x" * federation.MOST_ROW_BYTES)
    body = document(b'{"name":"small","state":"failed"},' + large)
    async with serving(StubStore(body=body)) as stub:
        opened = open_cluster(load({"cluster_upstreams": [f"east={stub.url}"], "cluster_interval": ["1s"]}, {}))
        try:
            await until(lambda: opened.loop.ready)
            assert [(node.name, node.reason) for node in opened.loop.cluster.nodes] == [
                ("east/large", "too_large"),
                ("east/small", ""),
            ]
        finally:
            await opened.close()


def peak_kib(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2].split()[0])


@pytest.mark.parametrize(("option", "times"), [("--prometheus.url={}", 12), ("--cluster.upstreams=east={}", 3)])
async def test_a_server_that_gets_bombs_answers_probes_stays_small_and_stops(option: str, times: int) -> None:
    """The whole program. Each answer would become 256 MiB of JSON, and gigabytes of objects."""
    async with serving(StubStore(body=samples(256 * MIB), headers=GZIP)) as stub:
        running = await asyncio.create_subprocess_exec(
            *PODGPU,
            "cluster",
            option.format(stub.url),
            "--cluster.interval=1s",
            "--web.listen-address=127.0.0.1:0",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert running.stderr is not None
        try:
            address = ""
            while not address:
                line = (await running.stderr.readline()).decode()
                assert line, "it ended"
                found = re.search(r"127\.0\.0\.1:\d+", line.replace(stub.url, ""))
                address = found[0] if found else ""
            await until(lambda: len(stub.seen) >= times)
            async with aiohttp.ClientSession() as session, session.get(f"http://{address}/-/healthy") as answer:
                assert answer.status == 200
            assert peak_kib(running.pid) < 256 << 10
            running.terminate()
            assert await asyncio.wait_for(running.wait(), PATIENCE) == 0
        finally:
            if running.returncode is None:
                running.kill()
                await running.wait()
