"""What the agent does while the kubelet or the API server is away, and after."""

import os
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubernetes import kubectl
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.node import Node
from tests.kubernetes.cluster.programs import Programs
from tests.kubernetes.gpus import DRIVER, wait_for
from tests.kubernetes.kubectl import Object
from tests.kubernetes.samples import Samples

pytestmark = pytest.mark.usefixtures("memory", "namespace")
FOLDER = Path(os.environ.get("KUBECONFIG", "")).parent


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    """What is started again here runs until the last test has ended."""
    programs = Programs(Path("/var/log"))
    yield ControlPlane(FOLDER, programs)
    programs.stop_all()


@pytest.fixture
def agent() -> Object:
    kubectl.install(DRIVER)
    return kubectl.roll_out()


def pid_of(name: str) -> int:
    named = (each for each in Path("/proc").glob("[0-9]*/comm") if each.read_text().strip() == name)
    (only,) = [pid for pid in (int(each.parent.name) for each in named) if is_running(pid)]
    return only


def end(name: str) -> None:
    pid = pid_of(name)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not is_running(pid))


def is_running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "zombie" not in status.read_text()


def shares(pod: Object) -> dict[tuple[str, ...], float]:
    return direct(pod).by("podgpu_container_allocated_ratio", "namespace", "pod")


def direct(pod: Object) -> Samples:
    """Read the page from the pod itself: the API server may be away."""
    with urllib.request.urlopen(f"http://{pod['status']['podIP']}:19400/metrics", timeout=5) as answer:
        return Samples.read(answer.read().decode())


def is_up(pod: Object, source: str) -> bool:
    return direct(pod).by("podgpu_source_up", "source")[(source,)] == 1.0


def workloads(pod: Object) -> set[tuple[str, ...]]:
    return set(direct(pod).by("podgpu_pod_info", "pod", "workload_kind", "workload_name"))


def test_shares_stay_while_the_kubelet_restarts(agent: Object, plane: ControlPlane) -> None:
    wait_for(lambda: len(shares(agent)) == 4)
    before = shares(agent)
    end("kubelet")
    wait_for(lambda: not is_up(agent, "podresources"))
    assert shares(agent) == before
    Node(FOLDER, plane.programs, plane).start_kubelet()
    wait_for(lambda: is_up(agent, "podresources"))
    assert shares(agent) == before


def test_names_stay_while_the_api_server_restarts(agent: Object, plane: ControlPlane) -> None:
    wait_for(lambda: len(shares(agent)) == 4)
    before = workloads(agent)
    end("kube-apiserver")
    wait_for(lambda: not is_up(agent, "apiserver"))
    assert workloads(agent) == before
    plane.start_api_server()
    wait_for(lambda: is_up(agent, "apiserver"))
    assert workloads(agent) == before
