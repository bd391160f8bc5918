"""What must be true of an agent beside NVIDIA's programs, whether they run or were recorded."""

from typing import Any

import pytest

from podgpu.model.card import MONITOR
from tests.agent.rig import RunningAgent
from tests.nvidia.node import shares
from tests.nvidia.tenants import Shares

MONITORS = 0.0  # the share of a pod that only looks at a device


def is_read(agent: RunningAgent, right: Shares) -> bool:
    """Whether the agent knows every pod's share, or the others' by now."""
    found = shares(agent.snapshot())
    return {pod: set(held) for pod, held in found.items()} == {pod: set(held) for pod, held in _held(right).items()}


def judge(agent: RunningAgent, right: Shares) -> None:
    """Every share right, every process its pod's, nobody accused, and nothing to complain about."""
    agent.wait_for("all holders", lambda: is_read(agent, right))
    agent.wait_for("all processes", lambda: _pods_with_processes(agent.snapshot()) == _places(right))
    snapshot = agent.snapshot()
    found = shares(snapshot)
    assert found == {pod: pytest.approx(held, abs=1e-6) for pod, held in _held(right).items()}
    assert _monitors(snapshot) == {(pod, place) for pod, held in right.items() for place in held if not held[place]}
    assert [problem["text"] for problem in snapshot["insight"]["problems"]] == []
    assert snapshot.get("unclaimed", []) == []
    assert [part["name"] for part in snapshot["parts"] if not part["up"]] == []


def _held(right: Shares) -> Shares:
    held = {pod: {place: share for place, share in of.items() if share != MONITORS} for pod, of in right.items()}
    return {pod: of for pod, of in held.items() if of}


def _monitors(snapshot: dict[str, Any]) -> set[tuple[str, str]]:
    """The pods that look at a card which others may hold."""
    return {
        (excused["container"]["pod"], card["gpu"]["uuid"])
        for card in snapshot["cards"]
        for excused in card.get("excused", ())
        if excused["role"] == MONITOR
    }


def _places(right: Shares) -> set[tuple[str, str]]:
    return {(pod, place) for pod, held in right.items() for place in held}


def _pods_with_processes(snapshot: dict[str, Any]) -> set[tuple[str, str]]:
    """The pods that a process was booked to, each with the card or instance that it runs on."""
    return {
        (party["container"]["pod"], party.get("mig") or card["gpu"]["uuid"])
        for card in snapshot["cards"]
        for party in (*card["tenants"], *card["rest"])
        if party["processes"] and party.get("container")
    }
