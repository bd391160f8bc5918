"""A client that reads fast, and wants much, does not keep the others waiting."""

import asyncio
from itertools import pairwise

from podgpu.serve.http.connection import CHUNK_BYTES, TURN_BYTES, ServerConnection
from podgpu.serve.http.connections import Connections
from podgpu.serve.http.request import Limits, Request
from podgpu.serve.http.response import Response
from podgpu.supervise import brief


class Greedy(asyncio.Transport):
    """Takes everything at once."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.taken += len(data)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def is_closing(self) -> bool:
        return False


async def test_other_tasks_get_their_turn_while_a_large_body_is_written() -> None:
    size = 16 * TURN_BYTES

    async def respond(_request: Request) -> Response:
        return Response(200, bytes(size), more=(bytes(size), b"end"))

    wire = Greedy()
    connection = ServerConnection(respond, Connections(Limits(), 1))
    connection.connection_made(wire)
    turns: list[int] = []

    async def other() -> None:
        while wire.taken < 2 * size:
            turns.append(wire.taken)
            await asyncio.sleep(0)

    task = brief(other())
    connection.data_received(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
    await task
    steps = [after - before for before, after in pairwise(turns)]
    assert max(steps) <= TURN_BYTES + CHUNK_BYTES
