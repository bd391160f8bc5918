"""Faults that can be played here, one after another: what must hold does, whatever breaks.

U1  the page is there, in a second          U6  nothing is booked to nobody or twice
U3  the fault is named                      U7  no descriptors, threads or children pile up
U4  the page makes sense, every value too   U8  all is well again soon after
U5  counters never fall                     U9  the agent is alive, and ends when it is asked to

By default a few are played. `make matrix` plays all of them, in every phase of an agent's life.
"""

import os
from pathlib import Path

from tests.faults.plays import PLAYS
from tests.faults.rig import SLACK, agent_beside, counters, is_shown, is_well, no_counter_fell, node, pieces

FEW = ("A2", "B1", "B7")
CHOSEN = [play for play in PLAYS if play.id in FEW or os.environ.get("PODGPU_TEST_MATRIX") == "all"]


def test_one_fault_after_another_while_it_runs(library: Path, tmp_path: Path) -> None:
    with node() as beside, agent_beside(beside, tmp_path, library) as agent:
        agent.wait_for("all is well", lambda: is_well(agent))
        before, at_first = counters(agent), pieces(agent)
        for play in CHOSEN:
            beside.breaks(play)
            agent.node.faults = list(play.driver)
            agent.rewrite()
            agent.wait_for(f"{play.id} is named", lambda play=play: is_shown(agent, play))  # type: ignore[misc]
            during = counters(agent)
            no_counter_fell(before, during)
            beside.mends(play)
            agent.node.faults = []
            agent.rewrite()
            agent.wait_for(f"after {play.id}", lambda: is_well(agent))
            before = counters(agent)
            no_counter_fell(during, before)
            assert pieces(agent) <= at_first + SLACK, f"U7 after {play.id}"
        assert agent.terminate() < 5, "U9"
