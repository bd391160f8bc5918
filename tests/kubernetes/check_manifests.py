"""The plain manifests, applied as docs/install.md says. There is no driver here; the agent serves all the same."""

from collections.abc import Iterator

import pytest

from tests.kubernetes import kubectl
from tests.kubernetes.gpus import wait_for
from tests.kubernetes.kubectl import NAMESPACE, Object, page
from tests.kubernetes.samples import Samples
from tools.chart import PROJECT, manifests

FOLDER = PROJECT / "deploy/manifests"
FULL = {"nvml": 0.0, "podresources": 1.0, "apiserver": 1.0, "resource-claims": 1.0, "procfs": 1.0}
RESTRICTED = {"nvml": 0.0, "apiserver": 1.0, "resource-claims": 1.0, "procfs": 0.0}
pytestmark = pytest.mark.usefixtures("node")


@pytest.fixture(params=manifests.KINDS)
def applied(request: pytest.FixtureRequest, operators: None) -> Iterator[str]:
    kind: str = request.param
    kubectl.kubectl("apply", f"--filename={FOLDER / kind}")
    yield kind
    kubectl.kubectl("delete", f"--filename={FOLDER / kind}")
    wait_for(lambda: kubectl.remains() == [])


def sources(pod: Object) -> dict[str, float]:
    found = Samples.read(page(pod, "/metrics")).by("podgpu_source_up", "source")
    return {source: value for (source,), value in found.items()}


def nodes(view: Object) -> dict[str, float]:
    found = Samples.read(page(view, "/metrics")).by("podgpu_cluster_nodes", "state")
    return {state: value for (state,), value in found.items()}


def test_the_agent_gets_ready_and_reads_what_it_may(applied: str) -> None:
    pod = kubectl.roll_out()
    wait_for(lambda: sources(pod) == (RESTRICTED if applied == "podgpu-restricted.yaml" else FULL))
    if applied == "podgpu-dcgm-port.yaml":
        assert page(pod, "/-/ready", port=9400) == "ready\n"
    if applied == "podgpu-cluster.yaml":
        view = kubectl.roll_out_cluster()
        wait_for(lambda: nodes(view).get("fresh") == 1.0)
    again = kubectl.kubectl("apply", f"--filename={FOLDER / applied}").splitlines()
    assert again and all(line.endswith("unchanged") for line in again)


def refused() -> list[str]:
    events = kubectl.get("events", f"--namespace={NAMESPACE}")
    return [each["message"] for each in events if each["reason"] == "FailedCreate"]


def test_a_stricter_namespace_refuses_the_defaults() -> None:
    kubectl.make_namespace(NAMESPACE, "baseline")
    kubectl.install({})
    wait_for(refused)
    assert 'violates PodSecurity "baseline:latest": host namespaces (hostPID=true), hostPath' in refused()[0]
    kubectl.uninstall()
    kubectl.kubectl("delete", "namespace", NAMESPACE)
