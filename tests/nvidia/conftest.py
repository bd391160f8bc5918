import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.agent.rig import RunningAgent, running_agent
from tests.fakenvml.conftest import library
from tests.fakenvml.fake_node import FakeNode
from tests.kubernetes.cluster.control_plane import NODE
from tests.kubernetes.cluster.node import KUBELET
from tests.kubernetes.gpus import wait_for
from tests.nvidia.programs import LIBRARY, LOGS, SCRIPT
from tests.soak.machine import cgroup_root

__all__ = ["library"]
pytest.register_assert_rewrite("tests.nvidia.judged")


@pytest.fixture
def agent(node: FakeNode) -> Iterator[RunningAgent]:
    """A whole agent on the node, as a service: in a cgroup of its own, as no pod."""
    root = cgroup_root()
    assert root, "no cgroup can be made here"
    place = root / f"podgpu-agent-{os.getpid()}.service"
    place.mkdir()
    before = ["sh", "-c", f'echo $$ > {place}/cgroup.procs; exec "$@"', "sh"]
    paths = (f"--path.kubelet={KUBELET}", f"--path.logs={LOGS}")
    flags = (f"--node-name={NODE}", f"--kube.kubeconfig={os.environ['KUBECONFIG']}", *paths)
    try:
        with running_agent(node, Path(SCRIPT).parent, LIBRARY, flags=flags, before=before) as started:
            yield started
    finally:
        wait_for(lambda: _is_removed(place))


def _is_removed(place: Path) -> bool:
    """The agent's sampler ends after the agent."""
    with suppress(OSError):
        place.rmdir()
    return not place.exists()
