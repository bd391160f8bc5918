"""Which pending connection is evicted when all places are taken, and that it takes no search."""

import socket
import time
from collections.abc import Iterator

import pytest

from podgpu.serve.http.pending import PendingConnection, PendingOfClient


@pytest.fixture
def wire() -> Iterator[socket.socket]:
    with socket.socket() as sock:
        yield sock


def pending_since(wire: socket.socket, since: float) -> PendingConnection:
    return PendingConnection(wire, "10.0.0.1", since, encrypted=False, connect=socket.socket.close)


def test_the_youngest_of_those_who_had_their_chance_leaves_else_the_oldest(wire: socket.socket) -> None:
    group = PendingOfClient("10.0.0.1")
    all_pending = [pending_since(wire, float(second)) for second in range(6)]
    for pending in all_pending:
        group.add(pending)
    left = []
    for settled_at in (-1.0, 3.0, 3.5, 1.0, 9.0, 9.0):
        left.append(group.choose_eviction(settled_at).since)
        group.discard(group.choose_eviction(settled_at))
    assert left == [0.0, 3.0, 2.0, 1.0, 5.0, 4.0]
    assert len(group) == 0


def test_a_flood_of_newcomers_is_not_searched(wire: socket.socket) -> None:
    """Twenty thousand who came just now, behind some who had their chance: each newcomer once looked at them all."""
    group = PendingOfClient("10.0.0.1")
    for number in range(40_000):
        group.add(pending_since(wire, number / 1000))
    began = time.process_time()
    for _ in range(15_000):
        group.discard(group.choose_eviction(20.0))
    assert time.process_time() - began < 1.0
