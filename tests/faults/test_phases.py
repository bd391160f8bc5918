"""Faults at the start of an agent, during scrapes and at its end: each takes an agent of its own, by `make matrix`."""

import time
from pathlib import Path

import pytest

from tests.faults.plays import PLAYS, Play
from tests.faults.rig import agent_beside, counters, is_shown, is_well, no_counter_fell, node


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.id)
def test_a_fault_that_was_there_before(play: Play, library: Path, tmp_path: Path) -> None:
    with node() as beside:
        beside.breaks(play)
        with agent_beside(beside, tmp_path, library, play) as agent:
            agent.wait_for(f"{play.id} is named", lambda: is_shown(agent, play))
            before = counters(agent)
            beside.mends(play)
            agent.node.faults = []
            agent.rewrite()
            agent.wait_for("all is well", lambda: is_well(agent))
            no_counter_fell(before, counters(agent))


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.id)
def test_a_fault_during_scrapes_and_at_the_end(play: Play, library: Path, tmp_path: Path) -> None:
    with node() as beside, agent_beside(beside, tmp_path, library) as agent:
        agent.wait_for("all is well", lambda: is_well(agent))
        before = counters(agent)
        beside.breaks(play)
        agent.node.faults = list(play.driver)
        agent.rewrite()
        ends = time.monotonic() + 3.0
        while time.monotonic() < ends:
            after = counters(agent)
            no_counter_fell(before, after)
            before = after
        assert agent.terminate() < 5, "U9"
