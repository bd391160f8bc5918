"""From the last released chart to this one and back, by Helm, on a real API server."""

import json
from typing import Any

import pytest

from tests.deploy.test_chart_values import AGENT, CLUSTER, RELEASED
from tests.kubernetes import kubectl
from tests.kubernetes.cluster.programs import run
from tests.kubernetes.gpus import wait_for
from tests.kubernetes.kubectl import NAMESPACE, Object

# What both versions take.
COMMON: Object = {
    "cluster": {"enabled": True},
    "service": {"enabled": True},
    "networkPolicy": {"enabled": True},
}
# Everything that is new, but for what needs other operators.
NEW: Object = {
    **{name: value for name, value in AGENT.items() if name not in ("podMonitor", "cluster")},
    "service": {"enabled": True},
    "cluster": {name: value for name, value in CLUSTER["cluster"].items() if name != "httpRoute"},
}


@pytest.fixture
def released(namespace: str) -> None:
    """Install the chart as it was published."""
    place = ["podgpu", str(RELEASED), f"--namespace={namespace}", "--values=-"]
    run("helm", "install", *place, stdin=json.dumps(COMMON))


def owners() -> dict[str, Any]:
    """Uid and selector of what has pods: an owner that was made anew would have another uid."""
    found = [
        *kubectl.get("daemonsets", f"--namespace={NAMESPACE}"),
        *kubectl.get("deployments", f"--namespace={NAMESPACE}"),
    ]
    return {each["kind"]: (each["metadata"]["uid"], each["spec"]["selector"]) for each in found}


def names() -> set[str]:
    """What the chart made, without what controllers made of it."""
    controllers = ("pod/", "replicaset", "controllerrevision", "endpoint")
    return {each for each in kubectl.remains() if not each.startswith(controllers)}


def certificate() -> str:
    (secret,) = [
        each for each in kubectl.get("secrets", f"--namespace={NAMESPACE}") if each["metadata"]["name"] == "podgpu-tls"
    ]
    return str(secret["data"]["tls.crt"])


@pytest.mark.usefixtures("released")
def test_an_upgrade_keeps_the_objects_and_a_rollback_brings_the_old_ones_back() -> None:
    before, had = owners(), names()
    kubectl.install(COMMON)
    assert owners() == before
    kubectl.install(NEW)
    assert owners() == before
    assert {each.rpartition("/")[2] for each in names() - had} >= {"podgpu-tls", "podgpu-web"}
    assert any(each.startswith("ingress") for each in names())
    made = certificate()
    kubectl.install(NEW)
    assert certificate() == made, "an upgrade must not make another certificate"
    run("helm", "rollback", "podgpu", "1", f"--namespace={NAMESPACE}")
    assert owners() == before
    wait_for(lambda: names() == had)
    kubectl.uninstall()
    wait_for(lambda: kubectl.remains() == [])


@pytest.mark.usefixtures("released", "node")
def test_the_agent_is_ready_again_after_an_upgrade() -> None:
    kubectl.roll_out()
    kubectl.install(COMMON)
    pod = kubectl.roll_out()
    assert pod["spec"]["priorityClassName"] == "system-node-critical"
    run("helm", "rollback", "podgpu", "1", f"--namespace={NAMESPACE}")
    assert "priorityClassName" not in kubectl.roll_out()["spec"]
