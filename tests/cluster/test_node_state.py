"""The state of a node, by what was read and what Kubernetes knows."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from podgpu.cluster.node_state import REASONS, ReadFault, ReadState, ReadTimes, is_unchanged, node_state
from podgpu.model import NODE_STATES, ClusterNode, LastWords
from tests.cluster.nodes import snapshot

TIMES = ReadTimes(15.0)
READ = snapshot("a")
KNOWN = ClusterNode(
    name="a",
    state="allocation",
    origin="api",
    snapshot=replace(READ, cards=()),
    allocatable={"nvidia.com/gpu": "8"},
    ready=True,
)
LATE = ReadFault("timeout", "no answer within 5 s")


def test_what_was_read_in_time_is_fresh() -> None:
    node = node_state("a", ReadState(origin="agent", snapshot=READ, seconds=44.0), KNOWN, TIMES)
    assert (node.state, node.origin, node.reason, node.detail) == ("fresh", "agent", "", "")
    assert node.snapshot is READ and node.model == "NVIDIA H200"
    assert node.allocatable == KNOWN.allocatable and node.ready


def test_a_missed_answer_does_not_make_a_node_stale_at_once() -> None:
    node = node_state("a", ReadState(origin="agent", snapshot=READ, seconds=20.0, fault=LATE), None, TIMES)
    assert node.state == "fresh"


def test_what_is_older_than_three_intervals_is_stale_and_says_why() -> None:
    node = node_state("a", ReadState(origin="agent", snapshot=READ, seconds=46.0, fault=LATE), None, TIMES)
    assert (node.state, node.reason, node.snapshot) == ("stale", "timeout", READ)
    assert node.detail == f"No answer within 5 s. {REASONS['timeout']}"


def test_an_agent_that_answers_with_the_same_numbers_again_and_again_has_stopped() -> None:
    node = node_state("a", ReadState(origin="agent", snapshot=READ, seconds=46.0), None, TIMES)
    assert (node.state, node.reason) == ("stale", "stopped")


def test_an_agent_with_long_intervals_of_its_own_is_not_stale_between_them() -> None:
    slow = replace(READ, interval_seconds=60.0)
    assert node_state("a", ReadState(origin="agent", snapshot=slow, seconds=170.0), None, TIMES).state == "fresh"


def test_what_is_older_than_five_minutes_is_not_shown_and_what_kubernetes_gave_is() -> None:
    old = ReadState(origin="agent", snapshot=READ, seconds=300.0, fault=LATE)
    assert node_state("a", old, KNOWN, TIMES).snapshot is READ
    node = node_state("a", replace(old, seconds=300.5), KNOWN, TIMES)
    assert (node.state, node.reason, node.origin) == ("failed", "timeout", "api")
    assert node.snapshot is KNOWN.snapshot


def test_where_kubernetes_knows_nothing_what_was_last_heard_stays_and_is_called_failed() -> None:
    old = ReadState(origin="agent", snapshot=READ, seconds=300.5, at=1_800_000_000.0, fault=LATE)
    node = node_state("a", old, None, TIMES)
    assert (node.state, node.origin, node.snapshot is READ, node.is_outdated) == ("failed", "agent", True, True)
    assert node.heard and (node.heard.at, node.heard.gpus) == (1_800_000_000.0, len(READ.cards))
    forgotten = node_state("a", replace(old, seconds=TIMES.remember + 1), None, TIMES)
    assert (forgotten.state, forgotten.snapshot) == ("failed", None)
    assert forgotten.heard == LastWords(at=1_800_000_000.0), "its name and since when, and no more"


def test_what_is_said_of_a_node_is_made_again_only_when_it_changes() -> None:
    for read in (
        ReadState(origin="agent", snapshot=READ, seconds=46.0, at=1.0, fault=LATE),
        ReadState(origin="agent", snapshot=READ, seconds=400.0, at=1.0, fault=LATE),
        ReadState(origin="agent", snapshot=READ, seconds=90_000.0, at=1.0),
        ReadState(origin="agent", fault=LATE),
    ):
        for known in (None, KNOWN):
            node = node_state("a", read, known, TIMES)
            assert is_unchanged(node, replace(read, seconds=read.seconds + 1), known, TIMES)
            assert not is_unchanged(node, replace(read, fault=ReadFault("garbage", "")), known, TIMES)
            assert not is_unchanged(node, replace(read, snapshot=READ, seconds=0.0), known, TIMES)


def test_a_node_that_never_answered_keeps_its_row() -> None:
    node = node_state("a", ReadState(origin="agent", fault=LATE), None, TIMES)
    assert (node.state, node.reason, node.snapshot) == ("failed", "timeout", None)


def test_a_node_that_nobody_reads_shows_what_kubernetes_gave() -> None:
    node = node_state("a", None, KNOWN, TIMES)
    assert (node.state, node.reason, node.origin) == ("allocation", "no_agent", "api")
    assert node.snapshot is KNOWN.snapshot and "install the podgpu agent" in node.detail


def test_the_docs_list_every_reason_and_state() -> None:
    page = (Path(__file__).parents[2] / "docs/cluster.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`([a-z_]+)`", "".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE))))
    assert set(REASONS) | set(NODE_STATES) <= listed


@pytest.mark.parametrize("reason", sorted(REASONS))
def test_every_reason_says_what_to_do(reason: str) -> None:
    node = node_state("a", ReadState(fault=ReadFault(reason, "what happened")), None, TIMES)
    assert node.state in NODE_STATES and node.reason == reason
    assert node.detail.startswith("What happened. ") and ":" in node.detail
