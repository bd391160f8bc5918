"""Who makes room in a full lobby, and that it takes no search."""

import socket
import time
from collections.abc import Iterator

import pytest

from podgpu.serve.http.pending import PendingConnection, PendingOfClient


@pytest.fixture
def wire() -> Iterator[socket.socket]:
    with socket.socket() as one:
        yield one


def caller(wire: socket.socket, since: float) -> PendingConnection:
    return PendingConnection(wire, "10.0.0.1", since, encrypted=False, connect=socket.socket.close)


def test_the_youngest_of_those_who_had_their_chance_leaves_else_the_oldest(wire: socket.socket) -> None:
    group = PendingOfClient("10.0.0.1")
    callers = [caller(wire, float(second)) for second in range(6)]
    for one in callers:
        group.add(one)
    left = []
    for ripe_at in (-1.0, 3.0, 3.5, 1.0, 9.0, 9.0):
        left.append(group.choose_eviction(ripe_at).since)
        group.discard(group.choose_eviction(ripe_at))
    assert left == [0.0, 3.0, 2.0, 1.0, 5.0, 4.0]
    assert len(group) == 0


def test_a_flood_of_newcomers_is_not_searched(wire: socket.socket) -> None:
    """Twenty thousand who came just now, behind some who had their chance: each newcomer once looked at them all."""
    group = PendingOfClient("10.0.0.1")
    for number in range(40_000):
        group.add(caller(wire, number / 1000))
    began = time.process_time()
    for _ in range(15_000):
        group.discard(group.choose_eviction(20.0))
    assert time.process_time() - began < 1.0
