"""The HTTP client against real sockets: its limits, deadlines, kept connections, and servers that misbehave."""

import asyncio
import gzip
import socket
from pathlib import Path
from typing import Any

import pytest

from podgpu.net.client import ERROR_BYTES, HttpAnswer, HttpClient
from podgpu.net.connection import BUFFER_BYTES, ConnectionRefused, HttpFault
from tests.net.rig import OK, Server, client, fault_of, get, serving
from tests.patience import PATIENCE, LoopClock, settle, until


async def test_a_request_says_what_it_is_and_an_answer_what_it_holds() -> None:
    answer = b'HTTP/1.1 200 OK\r\nETag: "7"\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nok'
    async with serving(answer) as server, client() as made:
        found = await made.request(
            "POST",
            f"{server.url}/a b?c=d%20e",
            {"X-One": "1", "user-agent": "me"},
            b"body",
            seconds=5.0,
            limit=9,
        )
    assert (found.status, found.etag, found.encoding, found.retry_after, found.body) == (
        200,
        '"7"',
        "",
        7.0,
        b"ok",
    )
    (head,) = server.heads
    assert head.startswith("POST /a%20b?c=d%20e HTTP/1.1\r\nHost: 127.0.0.1:")
    assert "X-One: 1\r\n" in head and "user-agent: me\r\n" in head and "User-Agent" not in head
    assert server.bodies == [b"body"]


@pytest.mark.parametrize(("given", "taken"), [("99999999", 300.0), ("soon", 0.0), ("-1", 0.0), ("²", 0.0)])
def test_a_server_cannot_switch_us_off_by_retry_after(given: str, taken: float) -> None:
    assert HttpAnswer(429, {"retry-after": given}, b"").retry_after == taken


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\nX: y\r\n\r\n",
            b"ok",
        ),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK, b"ok"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"ok"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
)
async def test_a_body_has_its_end_in_one_of_several_ways(answer: bytes, body: bytes) -> None:
    async with serving(answer, hangs_up=True) as server, client() as made:
        assert (await get(made, server.url)).body == body


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"SSH-2.0-OpenSSH\r\n", "garbage"),
        (b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nx", "garbage"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * (300 << 10), "garbage"),
        (b"", "unreachable"),
        (b"HTTP/1.1 200 OK\r\nContent-", "broken_off"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "broken_off"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nha", "broken_off"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + bytes(5000), "too_large"),
    ],
)
async def test_an_answer_that_is_none_has_a_reason(answer: bytes, reason: str) -> None:
    async with serving(answer, hangs_up=True) as server:
        assert (await fault_of(server.url, limit=4096)).reason == reason


async def test_a_server_without_an_answer_has_a_deadline() -> None:
    async with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf") as server:
        fault = await fault_of(server.url, seconds=0.1)
    assert (fault.reason, fault.detail) == ("timeout", "no answer within 0.1 s")


async def test_the_body_of_an_error_is_cut_instead_of_refused() -> None:
    async with (
        serving(b"HTTP/1.1 500 Oops\r\n\r\n" + bytes(2 * ERROR_BYTES), hangs_up=True) as server,
        client() as made,
    ):
        found = await get(made, server.url, limit=10)
    assert (found.status, len(found.body)) == (500, ERROR_BYTES)


@pytest.mark.parametrize("answer", [b"Content-Length: 9\r\n\r\nhalf", b"\r\nhalf"])
async def test_the_status_of_an_error_counts_even_if_its_body_breaks_off(answer: bytes) -> None:
    async with serving(b"HTTP/1.1 403 Forbidden\r\n" + answer, hangs_up=True) as server, client() as made:
        found = await get(made, server.url)
        assert (found.status, found.body) == (403, b"half")
        async with made.stream(server.url, silence=1.0) as stream:
            assert (await stream.error()).body == b"half"


async def test_an_error_in_place_of_a_stream_has_a_deadline() -> None:
    answer = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\nhalf"
    async with serving(answer) as server, client() as made, made.stream(server.url, silence=0.1) as stream:
        assert (await stream.error()).status == 403


@pytest.mark.parametrize(
    "url",
    [
        "http://[::1",
        "http://h:x/",
        "http://h:99999/",
        "ftp://h/",
        "/path",
        "http:///x",
        f"http://{'x' * 64}.y/",
    ],
)
async def test_an_address_that_is_none_has_a_reason(url: str) -> None:
    assert (await fault_of(url)).reason == "garbage"


async def test_a_redirect_is_an_answer_like_any_other() -> None:
    async with (
        serving(b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n") as server,
        client() as made,
    ):
        assert (await get(made, server.url)).status == 302
    assert len(server.heads) == 1


async def test_nothing_at_the_address_is_said_briefly_for_a_name_with_two_addresses_too() -> None:
    async with serving(OK) as server:
        pass
    for host in ("127.0.0.1", "localhost"):
        fault = await fault_of(server.url.replace("127.0.0.1", host))
        assert isinstance(fault, ConnectionRefused) and fault.detail == "Connection refused"


async def test_the_next_address_of_a_name_is_tried_if_one_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podgpu.net.client.NEXT_ADDRESS_SECONDS", 0.1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.2", 0))
        silent.listen(0)
        waiting = [socket.socket() for _ in range(3)]  # they fill its queue: nothing more is answered
        for caller in waiting:
            caller.setblocking(False)
            caller.connect_ex(silent.getsockname())
        async with serving(OK) as server, client() as made:
            port = int(server.url.rpartition(":")[2])
            found = [
                (socket.AF_INET, socket.SOCK_STREAM, 0, "", at) for at in (silent.getsockname(), ("127.0.0.1", port))
            ]

            async def addresses(*_: object, **__: object) -> list[Any]:
                return found

            monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", addresses)
            assert (await get(made, server.url.replace("127.0.0.1", "localhost"))).body == b"ok"
        for caller in waiting:
            caller.close()


async def test_an_address_of_a_kind_that_the_machine_lacks_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """So are IPv6 addresses, where there is no IPv6."""
    real = socket.getaddrinfo

    def both(_host: str, port: int, **_: Any) -> list[Any]:
        ((_family, *others),) = real("127.0.0.1", port, type=socket.SOCK_STREAM)
        return [(12, *others), (socket.AF_INET, *others), (12, *others)]  # DECnet

    monkeypatch.setattr(socket, "getaddrinfo", both)
    async with serving(OK) as server, client() as made:
        url = server.url.replace("127.0.0.1", "somewhere")
        assert (await get(made, url)).body == b"ok"


async def test_an_address_is_reached_while_no_name_can_be_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unresolved(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    async with serving(OK) as server, client() as made:
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unresolved)
        assert (await get(made, server.url)).body == b"ok"
        with pytest.raises(HttpFault, match="Temporary failure"):
            await get(made, server.url.replace("127.0.0.1", "localhost"))


async def test_a_connection_is_kept_and_opened_again_if_the_server_closed_it() -> None:
    async with serving(OK) as server, client() as made:
        await get(made, server.url)
        await get(made, server.url)
        assert server.connections == 1
        server.writers[0].close()
        await get(made, server.url)
        await get(made, server.url)
        assert (server.connections, len(server.heads)) == (2, 4)
        made.forget(server.url)
        await get(made, server.url)
        assert server.connections == 3


async def test_an_answer_to_no_request_is_not_taken_for_the_next() -> None:
    async with serving(OK + OK.replace(b"ok", b"no")) as server, client() as made:
        assert [(await get(made, server.url)).body for _ in range(2)] == [b"ok", b"ok"]
        assert server.connections == 2
        server.answer = OK
        made.forget(server.url)
        await get(made, server.url)
        server.writers[-1].write(OK.replace(b"ok", b"no"))
        await asyncio.sleep(0.05)
        assert (await get(made, server.url)).body == b"ok"


async def test_no_more_connections_are_open_than_allowed() -> None:
    async with serving(OK) as server, client(connections=2, kept=2) as made:
        await asyncio.gather(*(get(made, server.url) for _ in range(9)))
        assert server.connections == 2
    async with serving(OK) as server, client(kept=0) as made:
        await asyncio.gather(*(get(made, server.url) for _ in range(3)))
        await get(made, server.url)
        assert server.connections == 4


async def test_closing_the_client_ends_a_request_under_way() -> None:
    async with serving(b"") as server, client() as made:
        asked = asyncio.create_task(get(made, server.url))
        await until(lambda: server.heads)
        await made.close()
        with pytest.raises(HttpFault, match="closed"):
            await asked
        assert server.connections == 1


@pytest.mark.parametrize(
    ("body", "encoding", "found"),
    [
        (gzip.compress(b"x" * 100), "gzip", b"x" * 100),
        (b"as it is", "identity", b"as it is"),
        (b"not packed", "gzip", "garbage"),
        (gzip.compress(b"x" * 100)[:-9], "gzip", "broken_off"),
        (gzip.compress(b"x" * 101), "gzip", "too_large"),
        (b"x", "br", "garbage"),
    ],
)
def test_compression_is_undone_up_to_the_limit(body: bytes, encoding: str, found: bytes | str) -> None:
    answer = HttpAnswer(200, {"content-encoding": encoding}, body)
    if isinstance(found, bytes):
        assert answer.plain(100) == found
        return
    with pytest.raises(HttpFault) as caught:
        answer.plain(100)
    assert caught.value.reason == found


async def test_a_stream_comes_piece_by_piece_until_it_falls_silent() -> None:
    async with serving(b"HTTP/1.1 200 OK\r\n\r\nfirst") as server, client() as made:
        clock = LoopClock()
        async with made.stream(server.url, silence=PATIENCE) as stream:
            pieces = stream.pieces()
            assert await anext(pieces) == b"first"
            server.writers[0].write(b"second")
            assert await anext(pieces) == b"second"
            third = asyncio.ensure_future(anext(pieces))
            await settle()
            clock.set_ahead(PATIENCE)
            with pytest.raises(HttpFault) as caught:
                await third
        assert caught.value.reason == "stalled"


async def test_a_stream_that_is_refused_says_why() -> None:
    answer = b"HTTP/1.1 410 Gone\r\nRetry-After: 3\r\nContent-Length: 3\r\n\r\nold"
    async with serving(answer) as server, client() as made, made.stream(server.url, silence=1.0) as stream:
        assert stream.status == 410
        assert (await stream.error()).retry_after == 3.0


async def test_a_reader_that_rests_holds_up_the_server_and_not_the_memory() -> None:
    size = 64 << 20
    async with (
        serving(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(size), hangs_up=True) as server,
        client() as made,
        made.stream(server.url, silence=PATIENCE) as stream,
    ):
        await asyncio.sleep(0.3)
        pieces = [len(piece) async for piece in stream.pieces()]
    assert sum(pieces) == size
    assert max(pieces) <= 2 * BUFFER_BYTES + (64 << 10)


async def test_a_header_cannot_bring_another() -> None:
    async with serving(OK) as server, client() as made:
        with pytest.raises(HttpFault):
            await made.request("GET", server.url, {"X": "a\r\nY: b"}, seconds=1.0, limit=9)
    assert not server.heads


async def test_an_unix_socket_may_stand_for_the_address(tmp_path: Path) -> None:
    found = Server(OK)
    server = await asyncio.start_unix_server(found.serve, tmp_path / "socket")
    made = HttpClient(unix_socket=tmp_path / "socket")
    assert (await get(made, "http://localhost/x")).body == b"ok"
    await made.close()
    server.close()
    found.writers[0].close()
    await asyncio.sleep(0)


async def test_a_deadline_counts_for_a_body_in_small_pieces() -> None:
    async with (
        asyncio.timeout(PATIENCE),
        serving(b"HTTP/1.1 200 OK\r\n\r\n") as server,
        client() as made,
    ):
        asked = asyncio.create_task(get(made, server.url, seconds=0.3))
        while not asked.done():
            await asyncio.sleep(0.02)
            for writer in server.writers:
                writer.write(b".")
        with pytest.raises(HttpFault, match="within"):
            await asked
