"""NVIDIA's DRA driver on a real node: what the scheduler allocated of its devices, and what an agent says of that."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.rig import RunningAgent
from tests.fakenvml.fake_node import FakeNode
from tests.kubernetes.gpus import wait_for
from tests.kubernetes.kubectl import Object, apply, get, kubectl
from tests.nvidia import programs, tenants
from tests.nvidia.judged import MONITORS, judge
from tests.nvidia.modes import DRIVER_MODES, GPU, Asked, DriverMode
from tests.nvidia.node import alerts, would_fire
from tests.nvidia.recording import record
from tests.nvidia.tenants import NAMESPACE, Shares

VERSION, NAME = "resource.k8s.io/v1", "gpu.nvidia.com"
CLASSES = {NAME: "gpu", "mig.nvidia.com": "mig"}
MONITORING = "monitoring"
NAMESPACES = {NAMESPACE: {}, MONITORING: {"resource.kubernetes.io/admin-access": "true"}}


@pytest.fixture(params=DRIVER_MODES, ids=lambda mode: mode.name)
def mode(request: pytest.FixtureRequest) -> DriverMode:
    found: DriverMode = request.param
    return found


@pytest.fixture
def node(mode: DriverMode) -> Iterator[FakeNode]:
    """The node's cards while the driver offers them and the mode's pods have theirs."""
    made = mode.cards()
    programs.furnish(made)
    apply(*(_device_class(name, kind) for name, kind in CLASSES.items()))
    with programs.dra_driver(*mode.words):
        wait_for(lambda: get("resourceslices"))
        claims = (each for name, asked in mode.claims.items() for each in _objects(name, asked))
        plain = (tenants.asking(pod, GPU, count) for pod, count in mode.asks.items())
        try:
            tenants.run(*claims, *plain, namespaces=NAMESPACES)
            yield made
        finally:
            tenants.remove(*NAMESPACES)
    kubectl("delete", "resourceslices", "--all")


def _device_class(name: str, kind: str) -> Object:
    """As the driver's chart has it: a pod may also ask for a card as for one of a device plugin."""
    chosen = f"device.driver == '{NAME}' && device.attributes['{NAME}'].type == '{kind}'"
    spec: Object = {"selectors": [{"cel": {"expression": chosen}}]}
    if name == NAME:
        spec["extendedResourceName"] = GPU
    return {"apiVersion": VERSION, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def _objects(name: str, asked: Asked) -> Iterator[Object]:
    """A claim and the pods that have it."""
    namespace = MONITORING if asked.is_admin else NAMESPACE
    exactly: Object = {"deviceClassName": "mig.nvidia.com" if asked.mig else NAME}
    if asked.mig:
        profile = f"device.attributes['{NAME}'].profile == '{asked.mig}'"
        exactly["selectors"] = [{"cel": {"expression": profile}}]
    if asked.consumes:
        exactly["capacity"] = {"requests": dict(asked.consumes)}
    if asked.is_admin:
        exactly |= {"adminAccess": True, "allocationMode": "All"}
    yield {
        "apiVersion": VERSION,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }
    for pod in asked.pods:
        yield tenants.claiming(pod, name, namespace=namespace)


def given(mode: DriverMode) -> Shares:
    """By the devices that the scheduler allocated, and by what was asked for of them."""
    devices = {
        device["name"]: device["attributes"]["uuid"]["string"]
        for each in get("resourceslices")
        for device in each["spec"].get("devices", ())
    }
    found: Shares = {}
    for claim in get("resourceclaims", "--all-namespaces"):
        asked = mode.claims.get(claim["metadata"]["name"]) or _plain(claim)
        results = claim["status"]["allocation"]["devices"]["results"]
        for pod in asked.pods:
            share = MONITORS if asked.is_admin else asked.share / len(asked.pods)
            found[pod] = {devices[result["device"]]: share for result in results}
    return _divided(found) if mode.shares == "unlimited" else found


def _plain(claim: Object) -> Asked:
    """The scheduler has made the claim for a pod that has none."""
    return Asked(1.0, tuple(user["name"] for user in claim["status"]["reservedFor"]))


def _divided(given: Shares) -> Shares:
    """Claims that consume nothing of a card have it in equal parts."""
    users = [place for held in given.values() for place in held]
    return {pod: {place: 1 / users.count(place) for place in held} for pod, held in given.items()}


def test_every_share_is_right_and_no_alert_fires(
    mode: DriverMode, node: FakeNode, agent: RunningAgent, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    right = given(mode)
    assert set(right) == {pod for asked in mode.claims.values() for pod in asked.pods} | set(mode.asks)
    tenants.put_to_work(node, right)
    judge(agent, right)
    with alerts(agent, tmp_path) as store:
        assert would_fire(store.when("podgpu_container_allocated_ratio")) == set()
    if request.config.getoption("--update"):
        record(mode.name, right)
