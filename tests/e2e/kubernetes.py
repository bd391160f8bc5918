"""An API server that is played in a thread: it knows the nodes and pods of demo agents, and perhaps dcgm-exporters."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Thread
from typing import Any

from podgpu.kube.cluster_watch import NODES
from tests.fakeapi.server import FakeApi

EXPORTER = {"app.kubernetes.io/name": "dcgm-exporter"}
GPU = "nvidia.com/gpu"


@contextmanager
def kubernetes(snapshots: Mapping[str, Any], exporters: Mapping[str, str]) -> Iterator[str]:
    """Yield its address. `snapshots` are those of the agents, `exporters` the addresses of pages, both by node."""
    pods = [_pod(node, card, tenant) for node, snapshot in snapshots.items() for card, tenant in whole_cards(snapshot)]
    pods += [_exporter(node) for node in exporters]
    fake = FakeApi(pods=pods, version=5, lists_of={NODES: [_node(name) for name in snapshots]}, selects=True)
    fake.pods_at = {_name(node): url for node, url in exporters.items()}  # reached through the API server
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(fake.start(), loop).result()
        yield fake.url
        asyncio.run_coroutine_threadsafe(fake.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def whole_cards(snapshot: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the cards that one container has for itself, and that container."""
    for card in snapshot["cards"]:
        if len(card["tenants"]) == 1 and not card["gpu"].get("mig_enabled"):
            yield card, card["tenants"][0]


def _node(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {}},
        "status": {"allocatable": {GPU: "8"}, "capacity": {GPU: "8"}},
    }


def _pod(node: str, card: Any, tenant: Any) -> dict[str, Any]:
    ref = tenant["container"]
    given = [{"name": GPU, "resources": [{"resourceID": card["gpu"]["uuid"], "health": "Healthy"}]}]
    container = {"name": ref["container"], "resources": {"limits": {GPU: "1"}}}
    status = {"name": ref["container"], "allocatedResourcesStatus": given, "state": {"running": {}}}
    metadata = {"name": ref["pod"], "namespace": ref["namespace"], "uid": f"{ref['pod_uid']}-{node}"}
    return {
        "metadata": {**metadata, "resourceVersion": "1"},
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": "Running", "containerStatuses": [status]},
    }


def _name(node: str) -> str:
    return f"exporter-{node}"


def _exporter(node: str) -> dict[str, Any]:
    name, ports = _name(node), [{"name": "metrics", "containerPort": 9400}]
    return {
        "metadata": {
            "name": name,
            "namespace": "gpu-operator",
            "uid": name,
            "ownerReferences": [{"kind": "DaemonSet", "name": "dcgm-exporter", "controller": True, "uid": "d"}],
            "resourceVersion": "1",
            "labels": EXPORTER,
        },
        "spec": {"nodeName": node, "containers": [{"name": "exporter", "ports": ports}]},
        "status": {"phase": "Running", "podIP": "10.0.0.9"},
    }
