"""Which pending connections are evicted when all places are taken, and what that takes."""

import socket
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from math import inf

import pytest

from podgpu.serve.http.connections import Connections
from podgpu.serve.http.listener import PendingConnection, PendingConnections
from podgpu.serve.http.request import Limits, Request
from podgpu.serve.http.response import Response, text_response


async def respond(_request: Request) -> Response:
    return text_response(200, "")


class Crowd:
    """Clients that say nothing."""

    def __init__(self, places: int) -> None:
        self._stack = ExitStack()
        self._wires: list[tuple[str, socket.socket]] = []
        self.pending = PendingConnections(Connections(Limits(), places), places, lambda pending: pending.sock.close())

    def come(self, name: str, client: str, now: float) -> None:
        ours, theirs = socket.socketpair()
        self._stack.enter_context(theirs)
        ours.setblocking(False)
        self._wires.append((name, ours))
        self.pending.add(PendingConnection(ours, client, now, None, respond))

    def names(self) -> str:
        """Those that are still there."""
        return "".join(name for name, wire in self._wires if wire.fileno() >= 0)

    def leave(self) -> None:
        self.pending.sweep(inf)
        self._stack.close()


@pytest.fixture
async def crowd() -> AsyncIterator[Crowd]:
    crowd = Crowd(places=8)
    yield crowd
    crowd.leave()


async def test_the_youngest_of_those_who_had_their_chance_leaves_else_the_oldest(crowd: Crowd) -> None:
    for second, name in enumerate("abcd"):
        crowd.come(name, "10.0.0.1", float(second))
    crowd.come("e", "10.0.0.1", 3.5)  # a to c have been there for a second
    assert crowd.names() == "abde"
    crowd.come("f", "10.0.0.1", 0.5)  # none has
    assert crowd.names() == "bdef"


async def test_the_largest_network_makes_room(crowd: Crowd) -> None:
    for name in "abc":
        crowd.come(name, "10.0.0.1", 0.0)
    for number, name in enumerate("uvwxy"):
        crowd.come(name, f"10.0.1.{number}", 0.0)
    crowd.come("z", "10.0.2.1", 9.0)
    assert crowd.names() == "abuvwxyz"


async def test_a_flood_is_compared_a_few_times_only() -> None:
    """Each newcomer was once compared with all the others."""
    crowd = Crowd(places=640)
    for number in range(320):
        crowd.come("", "10.0.0.1", number / 1000)
    began = time.process_time()
    for number in range(500):
        crowd.come("", "10.0.0.1", number / 1000 + 320)
    assert time.process_time() - began < 2.0
    assert len(crowd.pending) <= 320
    crowd.leave()
