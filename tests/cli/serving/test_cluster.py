"""The command as a process: it reads agents, serves them, and stops when it is told to."""

import asyncio
import signal
import sys
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from podgpu.kube.cluster_watch import NODES
from podgpu.model import Cluster
from podgpu.views.cluster.json import decode
from tests.cluster.fleet import Fleet
from tests.cluster.nodes import document, node_name
from tests.fakeapi.server import FakeApi
from tests.patience import PATIENCE, PODGPU
from tests.ports import quiet_port


def page(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        body: bytes = answer.read()
        return body


async def ready(url: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await asyncio.to_thread(page, f"{url}/-/ready")
            except OSError:
                await asyncio.sleep(0.05)
            else:
                return


@asynccontextmanager
async def serving(*options: str) -> AsyncIterator[str]:
    url = f"http://127.0.0.1:{(port := quiet_port())}"
    process = await asyncio.create_subprocess_exec(
        *(*PODGPU, "cluster", f"--web.listen-address=127.0.0.1:{port}", *options), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await ready(url)
        yield url
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()


async def cluster_at(url: str) -> Cluster:
    return decode(await asyncio.to_thread(page, f"{url}/api/v1/cluster"))


async def test_it_serves_the_agents_until_it_is_stopped() -> None:
    async with Fleet(2, document) as fleet, serving(f"--cluster.agents={','.join(fleet.urls)}") as url:
        found = await cluster_at(url)
    assert [(node.name, node.state) for node in found.nodes] == [
        (node_name(0), "fresh"),
        (node_name(1), "fresh"),
    ]


GPU = "nvidia.com/gpu"
CARD = "GPU-0000000a-52d4-4b8e-9c60-1a2b3c4d5e60"


def gpu_node(name: str, gpus: int, **spec: Any) -> dict[str, Any]:
    offered = {GPU: str(gpus)}
    metadata = {"name": name, "uid": name, "resourceVersion": "1"}
    return {"metadata": metadata, "spec": spec, "status": {"capacity": offered, "allocatable": offered}}


def asking(name: str, gpus: int, **more: str) -> dict[str, Any]:
    return {"name": name, "resources": {"limits": {GPU: str(gpus)}}, **more}


def gpu_pod(name: str, node: str, init: list[dict[str, Any]], *main: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "team", "uid": name, "resourceVersion": "1"},
        "spec": {"nodeName": node, "initContainers": init, "containers": list(main)},
        "status": {"phase": "Pending", **status},
    }


def running(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "state": {"running": {}}} for name in names]


def held_by(cluster: Cluster) -> Counter[str]:
    """How many cards each pod holds. A card that two containers of a pod hold is one card."""
    cards = [card for node in cluster.nodes if node.snapshot for card in node.snapshot.cards]
    return Counter(pod for card in cards for pod in {tenant.container.pod for tenant in card.tenants})


async def test_without_an_agent_pods_hold_what_the_scheduler_counts_for_them() -> None:
    """Init containers run before the others, so the larger number counts; sidecars run beside them."""
    sidecar = asking("side", 1, restartPolicy="Always")
    known = {"name": "main", "allocatedResourcesStatus": [{"name": GPU, "resources": [{"resourceID": CARD}]}]}
    pods = [
        gpu_pod("same", "n", [asking("init", 1)], asking("main", 1), initContainerStatuses=running("init")),
        gpu_pod(
            "known",
            "n",
            [asking("init", 1)],
            asking("main", 1),
            initContainerStatuses=running("init"),
            containerStatuses=[known],
        ),
        gpu_pod(
            "more", "n", [asking("init", 3)], asking("main", 1), phase="Running", containerStatuses=running("main")
        ),
        gpu_pod("beside", "n", [sidecar], asking("main", 1), initContainerStatuses=running("side")),
        gpu_pod("after", "n", [sidecar, asking("init", 2)], asking("main", 1), initContainerStatuses=running("side")),
        gpu_pod("two", "n", [asking("a", 1), asking("b", 2)], asking("main", 1), initContainerStatuses=running("a")),
    ]
    fake = FakeApi(pods=pods, lists_of={NODES: [gpu_node("n", 16)]}, objects={"/version": {"major": "1"}})
    async with fake, serving(f"--kube.api={fake.url}", "--cluster.via=proxy") as url:
        found = await cluster_at(url)
    assert held_by(found) == {"same": 1, "known": 1, "more": 3, "beside": 2, "after": 3, "two": 2}
    assert [node.snapshot.unclaimed for node in found.nodes if node.snapshot] == [()]


MIG = "nvidia.com/mig-1g.18gb"


@pytest.mark.parametrize("held", [False, True], ids=["free", "held"])
@pytest.mark.parametrize(
    "labels",
    [
        {},
        {"nvidia.com/gpu.count": "4", f"{MIG}.count": "7", "nvidia.com/gpu.product": "NVIDIA-H200"},
    ],
    ids=["bare", "labelled"],
)
async def test_without_an_agent_a_card_in_mig_mode_is_a_card(labels: dict[str, str], held: bool) -> None:
    node = gpu_node("n", 3)
    node["metadata"]["labels"] = labels
    for offered in ("capacity", "allocatable"):
        node["status"][offered] = {GPU: "3", MIG: "7"}
    ids = [{"resourceID": "MIG-0a1b2c3d-1111-5111-8111-000000000001"}]
    status = {"name": "main", "allocatedResourcesStatus": [{"name": MIG, "resources": ids}]}
    on_instance = gpu_pod("slice", "n", [], {"name": "main", "resources": {"limits": {MIG: "1"}}})
    on_instance["status"] |= {"phase": "Running", "containerStatuses": [status]}
    pods = [gpu_pod("two", "n", [], asking("main", 2)), *([on_instance] if held else [])]
    fake = FakeApi(pods=pods, lists_of={NODES: [node]}, objects={"/version": {"major": "1"}})
    async with fake, serving(f"--kube.api={fake.url}", "--cluster.via=proxy") as url:
        found = await cluster_at(url)
    (snapshot,) = (node.snapshot for node in found.nodes)
    assert snapshot is not None and found.insight is not None
    assert [card.gpu.mig_enabled for card in snapshot.cards].count(True) == 1
    sums = found.insight.sums
    assert (sums.gpus, sums.free_whole_gpus) == (4, 1)
    assert held_by(found) == {"two": 2, **({"slice": 1} if held else {})}


async def test_what_nobody_holds_of_a_cordoned_node_is_not_free() -> None:
    nodes = [gpu_node("open", 4), gpu_node("shut", 4, unschedulable=True)]
    pods = [gpu_pod(f"on-{name}", name, [], asking("main", 1)) for name in ("open", "shut")]
    fake = FakeApi(pods=pods, lists_of={NODES: nodes}, objects={"/version": {"major": "1"}})
    async with fake, serving(f"--kube.api={fake.url}", "--cluster.via=proxy") as url:
        found = await cluster_at(url)
        metrics = (await asyncio.to_thread(page, f"{url}/metrics")).decode()
    assert {node.name: node.cordoned for node in found.nodes} == {"open": None, "shut": True}
    assert found.insight is not None
    sums = found.insight.sums
    assert (sums.gpus, sums.allocated_gpus, sums.free_gpus, sums.free_whole_gpus) == (8, 2.0, 3.0, 3)
    assert sums.cordoned_gpus == 3.0
    lines = [line for line in metrics.splitlines() if line.startswith(("podgpu_cluster_free", "podgpu_cluster_cord"))]
    assert lines == [
        'podgpu_cluster_free_gpus{node="open",model=""} 3.0',
        'podgpu_cluster_free_gpus{node="shut",model=""} 0.0',
        'podgpu_cluster_cordoned_gpus{node="shut",model=""} 3.0',
    ]


async def test_a_wrong_address_is_a_mistake_that_says_what_to_write() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "podgpu", "cluster", "--cluster.agents=gpu-1:19400"),
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    assert process.returncode == 2
    assert b"write it like http://127.0.0.1:19400" in said
