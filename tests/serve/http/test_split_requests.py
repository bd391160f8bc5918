"""Whatever bytes come, in whatever pieces: requests are answered the same, and nothing breaks."""

import asyncio
import re
import socket
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import httptools
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.serve.guard.guard import Guard
from podgpu.serve.http.connection import ServerConnection
from podgpu.serve.http.connections import Connections
from podgpu.serve.http.request import Limits
from podgpu.serve.pages import NodePages
from podgpu.serve.request_handler import Load, RequestHandler
from podgpu.serve.routes import NodeRoutes
from tests.patience import PATIENCE
from tests.serve.rig import StubNode

PATHS = (
    "/",
    "/metrics",
    "/metrics?a=b",
    "/-/healthy",
    "/-/ready",
    "/api/v1/snapshot",
    "/nowhere",
    "http://a/metrics",
)
FIELDS = (
    "Accept-Encoding: gzip",
    "Accept: application/openmetrics-text",
    "Content-Length: 0",
    "X-Long: " + "x" * 300,
)
SCRAPS = (
    *(
        b"GET / HTTP/1.1\r\n",
        b"GET /metrics HTTP/1.0\r\n",
        b"POST /-/release HTTP/1.1\r\n",
        b"CONNECT a:1 HTTP/1.1\r\n",
    ),
    *(
        b"Host: a\r\n",
        b"\r\n",
        b"\r",
        b"\n",
        b" folded\r\n",
        b"Content-Length: 3\r\n",
        b"Content-Length: 0\r\n",
    ),
    *(
        b"Transfer-Encoding: chunked\r\n",
        b"0\r\n\r\n",
        b"Connection: Upgrade\r\n",
        b"Upgrade: h2c\r\n",
        b"Expect: x\r\n",
    ),
    *(
        b"Connection: close\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"X: " + b"x" * 9000,
    ),
)


class Stage:
    """A connection with a socket at its other end, and everything that the event loop complained of."""

    def __init__(self, runner: asyncio.Runner) -> None:
        node, load = StubNode(), Load(40)
        node.current = msgspec.structs.replace(node.current, taken_at=4e9)  # the status page's age stays 0
        handler = RequestHandler(NodeRoutes(node, NodePages(10**6), load).table("native"), load, Guard())
        self._connect = partial(ServerConnection, handler, Connections(Limits(), 300))
        self._runner = runner
        self.complaints: list[dict[str, Any]] = []
        runner.get_loop().set_exception_handler(lambda _, context: self.complaints.append(context))

    def play(self, pieces: Sequence[bytes], *, turns: bool = True, ends: bool = False) -> bytes:
        """Give what is answered to the pieces, between which the event loop may turn.

        The server ends the connection, or else the client `ends` it after the last piece.
        """
        return self._runner.run(asyncio.wait_for(self._play(pieces, turns=turns, ends=ends), PATIENCE))

    async def _play(self, pieces: Sequence[bytes], *, turns: bool, ends: bool) -> bytes:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with theirs:
            theirs.setblocking(False)
            transport, connection = await loop.connect_accepted_socket(self._connect, ours)
            for piece in pieces:
                if not transport.is_closing():
                    connection.data_received(piece)
                if turns:
                    await asyncio.sleep(0)
            if ends:
                theirs.shutdown(socket.SHUT_WR)
            got = b""
            while data := await loop.sock_recv(theirs, 1 << 16):
                got += data
            return got


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with asyncio.Runner() as runner:
        yield Stage(runner)


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """One to four requests on end, the last of which ends the connection."""
    count = draw(st.integers(1, 4))
    return b"".join(_request(draw, last=number == count) for number in range(1, count + 1))


def _request(draw: st.DrawFn, *, last: bool) -> bytes:
    method, path = draw(st.sampled_from(("GET", "HEAD", "POST"))), draw(st.sampled_from(PATHS))
    fields = [*draw(st.lists(st.sampled_from(FIELDS), unique=True)), *(["Connection: close"] if last else [])]
    return "\r\n".join((f"{method} {path} HTTP/1.1", "Host: test", *fields, "", "")).encode()


def cut(data: bytes, places: set[int]) -> list[bytes]:
    ends = sorted({place % len(data) for place in places} | {len(data)})
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False) if start < end]


def timeless(answers: bytes) -> bytes:
    return re.sub(rb"\r\nDate: [^\r]*", b"", answers)


@given(data=requests(), places=st.sets(st.integers(0, 2000)), turns=st.booleans())
def test_requests_are_answered_the_same_however_they_are_cut(
    stage: Stage, data: bytes, places: set[int], turns: bool
) -> None:
    whole = timeless(stage.play([data]))
    assert timeless(stage.play(cut(data, places), turns=turns)) == whole
    assert whole.count(b"HTTP/1.1 ") == data.count(b" HTTP/1.1\r\n")
    assert stage.complaints == []


@given(
    pieces=st.lists(st.one_of(st.sampled_from(SCRAPS), st.binary(min_size=1, max_size=40)), max_size=12),
    turns=st.booleans(),
)
def test_no_bytes_break_it(stage: Stage, pieces: list[bytes], turns: bool) -> None:
    answers = stage.play(pieces, turns=turns, ends=True)
    assert stage.complaints == []
    for answer in filter(None, re.split(rb"(?=HTTP/1\.1 \d)", answers)):
        parser = httptools.HttpResponseParser(object())
        parser.feed_data(answer)
        assert parser.get_status_code() in {200, 400, 403, 404, 405, 413, 417, 431}
