"""What can be asked for, and where."""

import gzip

import msgspec

from podgpu.config import Config
from podgpu.model import Snapshot
from podgpu.option.value import Address
from podgpu.serve.pages import register_pages
from podgpu.views import native
from podgpu.views.dialects import Answers
from podgpu.views.series import SeriesFilter
from tests.serve.rig import StubNode, connected, make_snapshot, serving


def whole_query(snapshot: Snapshot) -> Answers:
    return lambda query: msgspec.json.encode([snapshot.node, dict(query)])


async def test_a_document_gets_the_query_and_answers_json() -> None:
    async with (
        serving(StubNode(), documents={"/usage": whole_query}) as server,
        connected(server) as client,
    ):
        answer = await client.get("/usage?pod=a%20b&pod=c")
        assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
        assert msgspec.json.decode(answer.body) == ["worker-1", {"pod": "a b"}]
        packed = await client.get("/usage", Accept_Encoding="gzip")
        assert msgspec.json.decode(gzip.decompress(packed.body)) == ["worker-1", {}]


async def test_a_document_is_got_and_nothing_else() -> None:
    async with (
        serving(StubNode(), documents={"/usage": whole_query}) as server,
        connected(server) as client,
    ):
        client.ask("/usage", "POST")
        assert (await client.answer()).status == 405


async def test_an_address_can_be_given_a_document_as_its_dialect() -> None:
    place = Address("127.0.0.1", 0, "list")
    async with (
        serving(StubNode(), place, documents={"/metrics/list": whole_query}) as server,
        connected(server) as client,
    ):
        assert msgspec.json.decode((await client.get("/metrics")).body) == ["worker-1", {}]


def test_every_dialect_is_registered_and_no_path_twice() -> None:
    found = register_pages(Config().of)
    assert "native" in found.dialects
    assert not set(found.pages) & set(found.documents)
    snapshot = make_snapshot()
    for path, view in found.pages.items():
        assert path.startswith("/")
        view(snapshot, {})


def test_processes_are_on_the_native_page_if_they_are_wanted() -> None:
    choice = SeriesFilter(level="process")
    wanted = register_pages(Config().of, choice).pages["/metrics/native"]
    snapshot = make_snapshot()
    assert wanted(snapshot, {}) == native.families(snapshot, {}, choice=choice)
