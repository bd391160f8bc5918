"""NVIDIA's device plugin on a real node: what it gave to pods, and what an agent says of that."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.rig import INTERVAL, RunningAgent
from tests.e2e.rig import eventually
from tests.fakenvml.fake_node import FakeEvent, FakeNode
from tests.kubernetes.gpus import wait_for
from tests.nvidia import programs, tenants
from tests.nvidia.judged import judge
from tests.nvidia.modes import GPU, PLUGIN_MODES, TIME_SLICING, PluginMode
from tests.nvidia.node import alerts, shares, would_fire
from tests.nvidia.recording import XID, allocatable, record
from tests.nvidia.tenants import NAMESPACE, Shares


@pytest.fixture(params=PLUGIN_MODES, ids=lambda mode: mode.name)
def mode(request: pytest.FixtureRequest) -> PluginMode:
    found: PluginMode = request.param
    return found


@pytest.fixture
def node(mode: PluginMode) -> Iterator[FakeNode]:
    """The node's cards while the plugin offers them and the mode's pods have theirs."""
    made = mode.cards()
    programs.furnish(made)
    with programs.device_plugin(*mode.words, config=json.dumps(mode.config())):
        tenants.wait_until_offered(**mode.offered)
        asked = (tenants.asking(pod, resource, count) for pod, (resource, count) in mode.asks.items())
        try:
            tenants.run(*asked, namespaces={NAMESPACE: {}})
            yield made
        finally:
            tenants.remove(NAMESPACE)
    tenants.wait_until_offered(**dict.fromkeys(mode.offered, 0))


def given(mode: PluginMode, node: FakeNode) -> Shares:
    """By the variable that the plugin has set in each container, and by what the pod asked for."""
    found: Shares = {}
    for pod in tenants.running():
        name = pod["metadata"]["name"]
        devices = [_uuid(node, device) for device in tenants.visible_devices(tenants.pid_of(pod))]
        resource, count = mode.asks[name]
        found[name] = dict.fromkeys(devices, count / mode.parts.get(resource, 1) / len(devices))
    return found


def _uuid(node: FakeNode, device: str) -> str:
    """Of a device that is named by its UUID, or by the number of its card."""
    return node.gpus[int(device)].uuid if device.isdecimal() else device


def test_every_share_is_right_and_no_alert_fires(
    mode: PluginMode, node: FakeNode, agent: RunningAgent, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    right = given(mode, node)
    assert set(right) == set(mode.asks)
    tenants.put_to_work(node, right)
    judge(agent, right)
    with alerts(agent, tmp_path) as store:
        assert would_fire(store.when("podgpu_container_allocated_ratio")) == set()
    if request.config.getoption("--update"):
        record(mode.name, right)


LOST = 79  # an XID that the plugin takes for a fault of the card
ATTEMPTS = 20


@pytest.mark.parametrize("mode", [TIME_SLICING], ids=lambda mode: mode.name, indirect=True)
def test_an_xid_takes_a_part_away_and_changes_no_share(
    mode: PluginMode, node: FakeNode, agent: RunningAgent, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    right = given(mode, node)
    tenants.put_to_work(node, right)
    judge(agent, right)
    with alerts(agent, tmp_path) as store:
        for number in range(1, ATTEMPTS):
            lost = _lose_a_part(agent, number)
            assert agent_says(agent) == right
            if lost.endswith(f"::{mode.parts[GPU] - 1}"):  # without the highest, there seem to be fewer
                break
            programs.restart_device_plugin()
            wait_for(lambda: len(_offered()) == mode.offered[GPU])
        eventually(lambda: would_fire(store), lambda firing: firing == {"PodgpuXidHardware"})
    if request.config.getoption("--update"):
        record(XID, right)


def _lose_a_part(agent: RunningAgent, number: int) -> str:
    """Raise an XID on the first card, and return the part that the plugin then no longer offers: it chooses any."""
    before = _offered()
    agent.node.events = [FakeEvent(0, LOST, number)]
    agent.rewrite()
    wait_for(lambda: len(_offered()) < len(before))
    (lost,) = before - _offered()
    xids = "podgpu_gpu_xid_errors_total"
    agent.wait_for("the XID", lambda: agent.value(xids, gpu="0", xid=str(LOST)) == number)
    return lost


def agent_says(agent: RunningAgent) -> Shares:
    """Two cycles from now."""
    taken = agent.snapshot()["taken_at"]
    agent.wait_for("two cycles", lambda: agent.snapshot()["taken_at"] > taken + 2 * INTERVAL)
    return shares(agent.snapshot())


def _offered() -> set[str]:
    """The parts of cards that the kubelet may give away."""
    return {part.decode() for part in re.findall(rb"GPU-[0-9a-f-]+::\d", allocatable())}
