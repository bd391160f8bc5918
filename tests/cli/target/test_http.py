"""An agent or a cluster over HTTP, against real servers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from podgpu.cli._target import open_target
from podgpu.cli._target.http import DocumentClient, HttpTarget, NothingListens
from podgpu.cluster.login_options import LoginOptions
from podgpu.config import Config, TerminalOptions
from podgpu.errors import UserError
from podgpu.model import Cluster, ClusterNode
from podgpu.views import json
from podgpu.views.cluster import json as cluster_json
from tests.serve.rig import StubNode, serving
from tests.tree import SETTINGS
from tests.views.quirks import SNAPSHOT

CLUSTER = Cluster(
    taken_at=1.0,
    version="1",
    name="lab",
    nodes=(
        ClusterNode(name=SNAPSHOT.node, state="fresh", origin="agent", snapshot=SNAPSHOT),
        ClusterNode(name="silent", state="failed", reason="deadline", detail="it hangs"),
    ),
)


@asynccontextmanager
async def server_of(answer: Callable[[str], bytes], *, then_wait: bool = False) -> AsyncIterator[str]:
    """Serve raw bytes by the head of the request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(answer(head.decode()))
        if then_wait:
            await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def reply(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def seen_at(url: str, patience: float = 10.0, /, **login: Any) -> HttpTarget:
    return await asyncio.to_thread(lambda: HttpTarget(DocumentClient(url, LoginOptions(**login), patience), SETTINGS))


async def test_an_agent_is_a_cluster_of_one_node() -> None:
    node = StubNode()
    node.current = SNAPSHOT
    async with serving(node) as server:
        target = await seen_at(f"http://127.0.0.1:{server.ports[0]}")
        (found,) = target.cluster.nodes
        assert (found.name, found.state, found.origin) == (SNAPSHOT.node, "fresh", "agent")
        assert len(target.full(SNAPSHOT.node).cards) == len(SNAPSHOT.cards)
        await asyncio.to_thread(target.close)


async def test_a_newer_snapshot_is_noticed_and_an_equal_one_is_not() -> None:
    node = StubNode()
    node.current = replace(SNAPSHOT, interval_seconds=0.1)
    async with serving(node) as server:
        target = await seen_at(f"http://127.0.0.1:{server.ports[0]}")
        first = target.cluster
        assert await asyncio.to_thread(target.changed, first, 0.6) is first
        node.current = replace(node.current, taken_at=2.0)
        later = await asyncio.to_thread(target.changed, first, 3.0)
        assert later.taken_at == 2.0
        await asyncio.to_thread(target.close)


async def test_an_agent_that_goes_away_leaves_its_last_snapshot_and_a_word_about_it() -> None:
    node = StubNode()
    node.current = replace(SNAPSHOT, interval_seconds=0.1)
    async with serving(node) as server:
        target = await seen_at(f"http://127.0.0.1:{server.ports[0]}")
    later = await asyncio.to_thread(target.changed, target.cluster, 3.0)
    assert later.nodes == target.cluster.nodes
    (part,) = later.parts
    assert part.fault is not None
    assert "refuses the connection" in part.fault.detail
    assert await asyncio.to_thread(target.changed, later, 1.2) is later  # nothing new
    await asyncio.to_thread(target.close)


async def test_a_page_that_is_gone_is_said_and_not_taken_for_no_news() -> None:
    body = json.encode(replace(SNAPSHOT, interval_seconds=0.1))
    answers = [reply(b"", "404 Not Found"), reply(body)]
    async with server_of(lambda _: answers.pop(0) if answers else reply(b"", "404 Not Found")) as url:
        target = await seen_at(url)
        later = await asyncio.to_thread(target.changed, target.cluster, 3.0)
        (part,) = later.parts
        assert part.fault is not None
        assert "is neither an agent nor a cluster of podgpu" in part.fault.detail
        await asyncio.to_thread(target.close)


async def test_a_cluster_is_recognised_by_its_answer() -> None:
    body = cluster_json.encode(CLUSTER)

    def answer(head: str) -> bytes:
        if "/api/v1/snapshot?node=silent " in head:
            return reply(b"node silent does not answer", "404 Not Found")
        return reply(json.encode(SNAPSHOT) if "/api/v1/snapshot?node=" in head else body)

    async with server_of(answer) as url:
        target = await seen_at(url)
        assert target.cluster.name == "lab"
        assert [node.state for node in target.cluster.nodes] == ["fresh", "failed"]
        assert (await asyncio.to_thread(target.full, SNAPSHOT.node)).node == SNAPSHOT.node
        with pytest.raises(UserError, match="node silent does not answer"):
            await asyncio.to_thread(target.full, "silent")
        await asyncio.to_thread(target.close)


async def problem(answer: bytes, *, then_wait: bool = False) -> str:
    async with server_of(lambda _: answer, then_wait=then_wait) as url:
        with pytest.raises(UserError) as refusal:
            await seen_at(url, 0.3 if then_wait else 10.0)
    return str(refusal.value)


async def test_whatever_answers_instead_of_an_agent_is_named() -> None:
    assert "is neither an agent nor a cluster" in await problem(reply(b"", "404 Not Found"))
    assert "answers 301" in await problem(reply(b"", "301 Moved"))
    assert "asks for a login; give --login.token-file" in await problem(reply(b"", "401 Unauthorized"))
    assert "does not let this account read" in await problem(reply(b"", "403 Forbidden"))
    assert "not a document of a podgpu cluster" in await problem(reply(b"[]"))
    assert "cannot be read" in await problem(b"SSH-2.0-OpenSSH\r\n")
    assert "cannot be read" in await problem(b"")
    assert "does not answer within 300 ms" in await problem(b"", then_wait=True)
    partial = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"
    assert "does not answer within 300 ms" in await problem(partial, then_wait=True)


async def test_nobody_there_is_a_refusal_of_its_own() -> None:
    async with server_of(lambda _: b"") as url:
        pass
    with pytest.raises(NothingListens):
        await seen_at(url)


@pytest.mark.parametrize(
    ("option", "text", "sent"),
    [
        ("token_file", "s3cret\n", "Authorization: Bearer s3cret\r\n"),
        ("password_file", "ada:love:lace\n", "Authorization: Basic YWRhOmxvdmU6bGFjZQ==\r\n"),
    ],
)
async def test_a_login_is_read_from_its_file(tmp_path: Path, option: str, text: str, sent: str) -> None:
    (tmp_path / "secret").write_text(text)
    heads: list[str] = []

    def answer(head: str) -> bytes:
        heads.append(head)
        return reply(cluster_json.encode(CLUSTER))

    async with server_of(answer) as url:
        target = await seen_at(url, **{option: tmp_path / "secret"})
        await asyncio.to_thread(target.close)
    assert sent in heads[0]


async def test_a_login_never_leaves_the_machine_in_plain_text(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret")
    chosen = LoginOptions(token_file=tmp_path / "secret")
    config = Config(sections=(TerminalOptions(url="http://gpu-1:19400"), chosen))
    with (
        pytest.raises(UserError, match="never sent over plain HTTP; write https://gpu-1:19400"),
        open_target(config),
    ):
        pass


async def test_a_wrong_login_is_named_without_the_secret(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret")
    async with server_of(lambda _: reply(b"", "401 Unauthorized")) as url:
        with pytest.raises(UserError, match="does not accept the login") as refusal:
            await seen_at(url, token_file=tmp_path / "secret")
    assert "s3cret" not in str(refusal.value)


async def test_to_quit_while_an_answer_is_awaited_is_no_error() -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await answered.wait()
        writer.write(reply(b"{}"))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        client = DocumentClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", LoginOptions(), 60.0)
        reading = asyncio.create_task(asyncio.to_thread(client.get, "/"))
        await asked.wait()
        client.close()
        answered.set()
        assert (await reading)[1] == b"{}"
        await asyncio.to_thread(client.close)
