"""Log lines about nodes that come and go."""

import logging

import pytest

from podgpu.cluster import node_reader
from podgpu.cluster.node_reader import MOST_LINES, NodeLog


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Clock:
    caplog.set_level(logging.INFO, "podgpu")
    clock = Clock()
    monkeypatch.setattr(node_reader, "time", clock)
    return clock


def flap(log: NodeLog, nodes: int) -> None:
    for number in range(nodes):
        log.lost(f"n{number}", "unreachable", "Connection refused")
        log.back(f"n{number}")


def test_a_thousand_agents_that_come_and_go_write_a_few_lines_a_minute(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    log = NodeLog()
    for _ in range(12):
        flap(log, 1000)
        log.sum_up()
        clock.now += 5.0
    assert len(caplog.records) == MOST_LINES
    log.sum_up()
    last = caplog.records[-1]
    assert last.getMessage() == "many nodes come and go" and len(caplog.records) == MOST_LINES + 1
    assert last.fields == {  # type: ignore[attr-defined]
        "lost": 12_000 - MOST_LINES // 2,
        "back": 12_000 - MOST_LINES // 2,
        "reasons": f"unreachable:{12_000 - MOST_LINES // 2}",
        "such_as": "n10,n11,n12",
    }


def test_the_next_minute_begins_anew(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    log = NodeLog()
    flap(log, 1)
    clock.now += 61.0
    log.sum_up()
    flap(log, 1)
    assert [record.getMessage() for record in caplog.records] == [
        "a node cannot be read",
        "a node is back",
        "a node cannot be read",
        "a node is back",
    ]
