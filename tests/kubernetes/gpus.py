"""Made-up GPUs on the node: a driver's library for the agent, and a device plugin that really gives them to pods."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from tests.fakenvml.build import build
from tests.fakenvml.fake_node import FakeNode, FakeProcess, h200
from tests.kubernetes.cluster.control_plane import NODE
from tests.kubernetes.cluster.programs import environment
from tests.kubernetes.kubectl import Object, apply, get, kubectl, make_namespace
from tests.kubernetes.plugins import dra_driver
from tests.patience import PATIENCE

FOLDER = Path("/run/nvidia")  # on the node; the chart mounts it as it would mount a driver
IMAGE = "podgpu:0.1.0"  # for workloads too: the only image here, and it has a Python
EXCLUSIVE, SHARED, CLAIMED = (h200(index).uuid for index in range(3))
OFFERED = {
    "nvidia.com/gpu": (EXCLUSIVE,),
    "nvidia.com/gpu.shared": tuple(f"{SHARED}::{share}" for share in range(4)),
}
SLEEP = ["/usr/bin/python3", "-c", "import time; time.sleep(10**6)"]
MIB = 1 << 20

# What the NVIDIA runtime does where there is one: the library is in the container, and found.
DRIVER: dict[str, Any] = {
    "extraHostVolumes": [{"name": "driver", "hostPath": str(FOLDER)}],
    "extraVolumeMounts": [{"name": "driver", "mountPath": str(FOLDER), "readOnly": True}],
    "extraEnv": [
        {"name": "LD_LIBRARY_PATH", "value": str(FOLDER)},
        {"name": "FAKENVML_SCRIPT", "value": str(FOLDER / "script")},
    ],
    "config": {"interval": "1s"},
}


@contextmanager
def offered() -> Iterator[FakeNode]:
    """Three cards: one given whole, one in four shares, one by DRA. The node has the label of GPU feature discovery."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    build(FOLDER / "build").replace(FOLDER / "libnvidia-ml.so.1")  # not over one that is mapped
    node = FakeNode([h200(index) for index in range(3)])
    node.write(FOLDER / "script")
    kubectl("label", "node", NODE, "nvidia.com/gpu.present=true", "--overwrite")
    words = [f"{resource}={','.join(ids)}" for resource, ids in OFFERED.items()]
    plugins = [sys.executable, "-m", "tests.kubernetes.plugins", *words]
    with subprocess.Popen(plugins, env=environment()) as process:
        try:
            wait_for(lambda: _capacity() == {name: str(len(ids)) for name, ids in OFFERED.items()})
            yield node
        finally:
            process.terminate()


def _capacity() -> dict[str, str]:
    (node,) = get("nodes")
    return {name: node["status"]["allocatable"].get(name, "") for name in OFFERED}


def make_tenants() -> None:
    """A Deployment on the whole card, two pods with a share each of another, and one that claims the third."""
    for namespace in ("team-a", "team-b", "team-c"):
        make_namespace(namespace)
    template = {"metadata": {"labels": {"app": "chat", "team": "a"}}, "spec": _asks("nvidia.com/gpu")}
    chat = {"replicas": 1, "selector": {"matchLabels": {"app": "chat"}}, "template": template}
    place = {"name": "chat", "namespace": "team-a"}
    claims = [{"name": "card", "resourceClaimName": "card"}]
    apply(dra_driver.device_class(), dra_driver.slice_of(CLAIMED), dra_driver.claim("team-c", "card"))
    apply(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": place, "spec": chat},
        *(_pod("team-b", name, _asks("nvidia.com/gpu.shared")) for name in ("batch", "idle")),
        _pod("team-c", "train", {**_runs({"claims": [{"name": "card"}]}), "resourceClaims": claims}),
    )
    kubectl("rollout", "status", "deployment/chat", "--namespace=team-a", "--timeout=90s")
    for namespace in ("team-b", "team-c"):
        kubectl("wait", "--for=condition=Ready", "pod", "--all", f"--namespace={namespace}", "--timeout=90s")


def _pod(namespace: str, name: str, spec: Object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def _asks(resource: str) -> Object:
    return _runs({"limits": {resource: "1"}})


def _runs(resources: Object) -> Object:
    container = {"name": "main", "image": IMAGE, "command": SLEEP, "resources": resources}
    return {"containers": [container], "terminationGracePeriodSeconds": 1}


def put_to_work(node: FakeNode) -> dict[str, int]:
    """Have the driver report the tenants' own processes, each with memory of its own. Returns bytes by pod."""
    memory: dict[str, int] = {}
    for number, (namespace, card) in enumerate([("team-a", 0), ("team-b", 1), ("team-c", 2)]):
        pods = get("pods", f"--namespace={namespace}")
        for place, pod in enumerate(pods):
            name = pod["metadata"]["name"]
            memory[name] = (1 + number + 2 * place) * 256 * MIB
            node.gpus[card].processes.append(FakeProcess(_pid(pod), memory[name], sm=96 // len(pods)))
    node.write(FOLDER / "script")
    return memory


def _pid(pod: Object) -> int:
    """The container's first process, as containerd knows it."""
    container = pod["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
    listed = subprocess.run(["ctr", "--namespace=k8s.io", "tasks", "ls"], capture_output=True, text=True, check=True)
    (pid,) = [int(line.split()[1]) for line in listed.stdout.splitlines() if line.startswith(container)]
    return pid


def wait_for(what: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Ask until the answer is true."""
    deadline = monotonic() + seconds
    while not what():
        assert monotonic() < deadline, f"not within {seconds} s: {what}"
        sleep(0.5)
