"""The pages in another application are those of podgpu's own server."""

import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from podgpu import library
from podgpu.assembly.server import open_pages
from podgpu.option.value import Address
from podgpu.serve.server import NodeServer
from tests.serve.rig import Answer, fetch

OPENMETRICS = {"Accept": "application/openmetrics-text;version=1.0.0"}
PAGES = ("/metrics", "/metrics/dcgm", "/metrics/native", "/api/v1/snapshot")
DOCUMENTS = ("/container/metrics", "/metrics/container-json", "/usage")
FACTS = "/api/v1/facts"  # wants to know of what
# One snapshot for all of a test.
STILL = "5m"

Client = TestClient[web.Request, web.Application]


@asynccontextmanager
async def mounted(node: library.Node, prefix: str = "") -> AsyncIterator[Client]:
    app = web.Application()
    app.add_routes(library.routes(node, prefix=prefix))
    async with TestClient(TestServer(app), auto_decompress=False) as client:
        yield client


@asynccontextmanager
async def served(node: library.Node) -> AsyncIterator[NodeServer]:
    server = NodeServer(
        node,
        series_limit=20_000,
        max_requests=40,
        max_connections=9,
        max_streams=9,
        registry=open_pages(node.config),
    )
    await server.start([Address("127.0.0.1", 0)])
    try:
        yield server
    finally:
        await server.stop()


async def ask(client: Client, path: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> Answer:
    async with client.request(method, path, headers={"Accept-Encoding": "identity", **(headers or {})}) as answer:
        fields = {name.lower(): value for name, value in answer.headers.items()}
        return Answer(answer.status, fields, await answer.read())


def same(answer: Answer, other: Answer) -> bool:
    """But for the time of day."""
    fields = [{name: value for name, value in each.headers.items() if name != "date"} for each in (answer, other)]
    return (answer.status, answer.body, fields[0]) == (other.status, other.body, fields[1])


@asynccontextmanager
async def both(prefix: str = "") -> AsyncIterator[tuple[library.Node, Client, NodeServer]]:
    async with (
        library.Node(source="simulator", interval=STILL) as node,
        mounted(node, prefix) as client,
        served(node) as server,
    ):
        yield node, client, server


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
async def test_every_page_is_answered_as_by_podgpu_itself(method: str) -> None:
    async with both("/gpu") as (node, client, server):
        paths = {route.path.removeprefix("/gpu") for route in library.routes(node, prefix="/gpu")}
        assert paths >= {*PAGES, *DOCUMENTS}
        for path in paths:
            own = await fetch(server, path, method)
            assert same(await ask(client, f"/gpu{path}", method), own), path
            is_refused = method == "POST" or (method == "HEAD" and path in DOCUMENTS)
            assert own.status == (405 if is_refused else 400 if path == FACTS else 200)


async def test_the_client_chooses_the_format_and_the_compression() -> None:
    async with both() as (_, client, server):
        metrics = await ask(client, "/metrics", headers=OPENMETRICS)
        packed = await ask(client, "/metrics", headers={"Accept-Encoding": "gzip"})
        assert same(packed, await fetch(server, "/metrics", Accept_Encoding="gzip"))
    assert metrics.text.endswith("# EOF\n")
    assert packed.headers["content-encoding"] == "gzip"


async def test_a_page_that_the_client_has_is_not_sent_again() -> None:
    async with both() as (_, client, server):
        page = await fetch(server, "/metrics")
        again = await ask(client, "/metrics", headers={"If-None-Match": page.headers["etag"]})
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", page.headers["etag"])


async def test_filters_reach_the_document() -> None:
    async with library.Node(source="simulator", interval=STILL) as node, mounted(node, "/gpu/") as client:
        wanted = next(row.pod for row in library.gpu_metrics(node.snapshot) if row.pod)
        found = await ask(client, f"/gpu/container/metrics?pod={wanted}")
        nobody = await ask(client, "/gpu/container/metrics?pod=nobody")
    assert found.text.count('"device_uuid"') == len(library.gpu_metrics(node.snapshot, pod=wanted)) > 0
    assert nobody.text == "[]\n"


@pytest.mark.parametrize("path", ["/", "/healthz", "/-/ready", "/-/release"])
async def test_what_an_application_has_itself_is_left_to_it(path: str) -> None:
    async with mounted(library.Node(source="simulator")) as client:
        assert (await ask(client, path, "POST")).status == 404


async def test_before_the_first_reading_the_pages_say_so() -> None:
    async with mounted(library.Node(source="simulator")) as client:
        answer = await ask(client, "/metrics")
    assert answer.status == 200
    assert 'source="simulator"} 0.0\n' in answer.text


def test_the_library_loads_no_server_that_is_not_asked_for() -> None:
    look = "import sys; from podgpu import library; print('aiohttp.web' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", look], text=True) == "False\n"
