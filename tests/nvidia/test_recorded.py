"""What a node answered beside NVIDIA's device plugin and DRA driver, asked again by a whole agent without them."""

import asyncio
from pathlib import Path

import pytest

from tests.agent.rig import running_agent
from tests.agent.stage import write_proc
from tests.fakeapi.recorded import NODE, dynamic_resources, listed
from tests.fakeapi.server import FakeApi
from tests.fakekubelet.kubelet import FakeKubelet, Reply, kubelet_root
from tests.fakekubelet.rig import recorded as bytes_of
from tests.fakenvml.fake_node import FakeNode
from tests.nvidia.judged import judge
from tests.nvidia.modes import DRIVER_MODES, PLUGIN_MODES, TIME_SLICING
from tests.nvidia.recording import XID, read, recorded
from tests.nvidia.tenants import put_on_cards

MODES = {mode.name: mode for mode in (*PLUGIN_MODES, *DRIVER_MODES)} | {XID: TIME_SLICING}
LISTS = {"List": "podresources-v1-list", "GetAllocatableResources": "podresources-v1-allocatable"}


def test_every_mode_was_recorded() -> None:
    assert recorded() == sorted(MODES)


@pytest.mark.parametrize("name", MODES)
async def test_every_share_is_read_right_again(name: str, library: Path, tmp_path: Path) -> None:
    cluster = f"nvidia/{name}"
    node = _at_work(name, tmp_path / "proc")
    with kubelet_root() as root:
        replies = {f"/v1.PodResourcesLister/{call}": Reply(bytes_of(cluster, file)) for call, file in LISTS.items()}
        pods = listed(cluster)["items"]
        async with (
            FakeKubelet(root, sockets=("pod-resources/kubelet.sock",), replies=replies),
            FakeApi(pods=pods, objects=dynamic_resources(cluster=cluster)) as server,
        ):
            flags = (f"--node-name={NODE}", f"--kube.api={server.url}", f"--path.kubelet={root}")
            proc = f"--path.procfs={tmp_path / 'proc'}"
            await asyncio.to_thread(_judged, name, node, tmp_path, library, (*flags, proc))


def _judged(name: str, node: FakeNode, folder: Path, library: Path, flags: tuple[str, ...]) -> None:
    with running_agent(node, folder, library, flags=flags) as agent:
        judge(agent, read(name, "shares.json"))


def _at_work(name: str, proc: Path) -> FakeNode:
    """The cards of a mode with a process of each pod, in the cgroup that it had."""
    node = MODES[name].cards()
    pids = {}
    for pid, (pod, cgroup) in enumerate(read(name, "cgroups.json").items(), start=1000):
        write_proc(proc, pid, cgroup, command="pause")
        pids[pod] = pid
    write_proc(proc, 1, "0::/init.scope\n", command="systemd")
    (proc / "stat").write_text("btime 1700000000\n")
    put_on_cards(node, read(name, "shares.json"), pids)
    return node
