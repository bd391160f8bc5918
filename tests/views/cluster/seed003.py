"""Nodes and pods as `kubectl inspect gpushare` sees them, and the table of the seed that they make."""

from typing import Any

from tests.fakeapi.server import FakeApi

# Units on each card, by node: the allocated ones of the published table.
SEED = {"192.168.3.4": (11, [4, 6, 10, 0, 0, 0, 0, 0]), "192.168.68.4": (10, [4, 0, 10, 9, 0, 10, 6, 6])}


def node(name: str, units: int, cards: int, address: str | None = None) -> dict[str, Any]:
    resources = {"cpu": "64", "aliyun.com/gpu-mem": str(units), "aliyun.com/gpu-count": str(cards)}
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name.replace(chr(46), chr(45))}",
            "labels": {"gpushare": "true"},
        },
        "status": {
            "addresses": [
                {"type": "Hostname", "address": "h"},
                {"type": "InternalIP", "address": address or name},
            ],
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str, where: str, units: int, card: int | None = None, *, of_card: int = 0) -> dict[str, Any]:
    notes: dict[str, str] = {}
    if card is not None:
        notes |= {"ALIYUN_COM_GPU_MEM_IDX": str(card), "ALIYUN_COM_GPU_MEM_DEV": str(of_card)}
    limits = {"limits": {"aliyun.com/gpu-mem": str(units)}}
    return {
        "metadata": {"name": name, "namespace": "xmcvt", "uid": f"uid-{name}", "annotations": notes},
        "spec": {"nodeName": where, "containers": [{"name": "app", "resources": limits}]},
        "status": {"phase": "Running"},
    }


def seed() -> FakeApi:
    pods = [
        pod(f"app-{place}-{card}", name, units, card, of_card=of_card)
        for place, (name, (of_card, given)) in enumerate(SEED.items())
        for card, units in enumerate(given)
        if units
    ]
    return cluster([node(name, of_card * 8, 8) for name, (of_card, _) in SEED.items()], pods)


def cluster(nodes: list[dict[str, Any]], pods: list[dict[str, Any]]) -> FakeApi:
    return FakeApi(pods=pods, lists_of={"/api/v1/nodes": nodes})
