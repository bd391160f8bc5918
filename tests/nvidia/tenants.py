"""Pods that ask for GPUs, what the node really gave them, and their processes on the cards."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.fakenvml.fake_node import FakeNode, FakeProcess
from tests.kubernetes.cluster import pause
from tests.kubernetes.cluster.control_plane import NODE
from tests.kubernetes.gpus import wait_for
from tests.kubernetes.kubectl import Object, apply, get, kubectl, make_namespace
from tests.nvidia.programs import SCRIPT

NAMESPACE = "team"
MIB = 1 << 20
Shares = dict[str, dict[str, float]]  # by pod, then by the UUID of the card or instance


def pod(name: str, resources: Object, claims: Sequence[str] = (), namespace: str = NAMESPACE) -> Object:
    """A pod of one container, whose only process waits."""
    container = {"name": "main", "image": pause.NAME, "imagePullPolicy": "Never", "resources": resources}
    asks = [{"name": claim, "resourceClaimName": claim} for claim in claims]
    # Not 0: then the pod would be gone before the kubelet has given its claims back.
    spec: Object = {"containers": [container], "resourceClaims": asks, "terminationGracePeriodSeconds": 1}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def asking(name: str, resource: str, count: int) -> Object:
    return pod(name, {"limits": {resource: str(count)}})


def claiming(name: str, *claims: str, namespace: str = NAMESPACE) -> Object:
    return pod(name, {"claims": [{"name": claim} for claim in claims]}, claims, namespace)


def run(*objects: Object, namespaces: Mapping[str, Mapping[str, str]]) -> None:
    """Make them, and wait until every pod runs."""
    for name, labels in namespaces.items():
        make_namespace(name)
        if labels:
            kubectl("label", "namespace", name, *(f"{key}={value}" for key, value in labels.items()), "--overwrite")
    apply(*objects)
    for name in {each["metadata"]["namespace"] for each in objects if each["kind"] == "Pod"}:
        try:
            kubectl("wait", "--for=condition=Ready", "pod", "--all", f"--namespace={name}", "--timeout=60s")
        except AssertionError as late:
            raise AssertionError(f"{late}\n{kubectl('get', 'events', f'--namespace={name}')}") from None


def remove(*namespaces: str) -> None:
    for name in namespaces:
        kubectl("delete", "pods,resourceclaims", "--all", f"--namespace={name}", "--wait", "--timeout=60s")


def offered(resource: str) -> int:
    """How many of a resource the kubelet tells the API server of."""
    (node,) = get("nodes")
    return int(node["status"]["allocatable"].get(resource, "0"))


def wait_until_offered(**resources: int) -> None:
    wait_for(lambda: {name: offered(name) for name in resources} == resources)


def running() -> list[Object]:
    return get("pods", "--all-namespaces", f"--field-selector=spec.nodeName={NODE}")


def pid_of(pod: Object) -> int:
    """The container's first process, as containerd knows it."""
    container = pod["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
    listed = subprocess.run(["ctr", "--namespace=k8s.io", "tasks", "ls"], capture_output=True, text=True, check=True)
    (pid,) = [int(line.split()[1]) for line in listed.stdout.splitlines() if line.startswith(container)]
    return pid


def visible_devices(pid: int) -> list[str]:
    """The devices that the plugin has the runtime give to a container: UUIDs or numbers of cards, as it was told."""
    variables = dict(text.split("=", 1) for text in Path(f"/proc/{pid}/environ").read_text().split("\0") if "=" in text)
    return variables["NVIDIA_VISIBLE_DEVICES"].split(",")


def put_to_work(node: FakeNode, shares: Shares) -> None:
    """Have the driver report each pod's own process on every device that the pod has."""
    put_on_cards(node, shares, {each["metadata"]["name"]: pid_of(each) for each in running()})
    node.write(SCRIPT)


def put_on_cards(node: FakeNode, shares: Shares, pids: Mapping[str, int]) -> None:
    for gpu in node.gpus:
        gpu.processes.clear()
        for name, held in shares.items():
            if gpu.uuid in held:
                gpu.processes.append(FakeProcess(pids[name], 256 * MIB, sm=5))
            for mig in gpu.migs:
                if mig.uuid in held:
                    gpu.processes.append(
                        FakeProcess(pids[name], 256 * MIB, ("compute",), mig.gpu_instance, mig.compute_instance, sm=5)
                    )
