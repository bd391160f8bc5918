"""What a node answered while NVIDIA's programs ran on it, kept so that an agent can be asked again without them.

`shares.json` is what is right: the devices that each pod was really given, and how much of them it asked for.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

from grpclib.client import Channel, UnaryUnaryMethod

from tests.fakekubelet.kubelet import POD_RESOURCES, PlainCodec
from tests.kubernetes.cluster.node import KUBELET
from tests.kubernetes.kubectl import Object, kubectl
from tests.nvidia.tenants import Shares, pid_of, running

XID = "xid"  # time-slicing, after one
FOLDER = Path(__file__).parents[1] / "recorded/nvidia"
_LISTS = {"List": "podresources-v1-list.bin", "GetAllocatableResources": "podresources-v1-allocatable.bin"}
_KINDS = ("resourceclaims", "resourceslices")


async def _asked(method: str) -> bytes:
    channel = Channel(path=str(KUBELET / POD_RESOURCES), codec=PlainCodec())
    try:
        return await UnaryUnaryMethod[bytes, bytes](channel, f"/v1.PodResourcesLister/{method}", bytes, bytes)(b"")
    finally:
        channel.close()


def allocatable() -> bytes:
    return asyncio.run(_asked("GetAllocatableResources"))


def record(name: str, shares: Shares) -> None:
    """Write down all that an agent can ask, what is right, and the cgroups of the pods' processes."""
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    for method, file in _LISTS.items():
        (folder / file).write_bytes(asyncio.run(_asked(method)))
    pods = running()
    _write(folder / "api-pods-list.json", _list(pods))
    for kind in _KINDS:
        items = json.loads(kubectl("get", kind, "--all-namespaces", "--output=json"))["items"]
        _write(folder / f"api-{kind}.json", _list(items))
    _write(folder / "cgroups.json", {each["metadata"]["name"]: _cgroup(pid_of(each)) for each in pods})
    _write(folder / "shares.json", shares)


def _list(items: list[Object]) -> Object:
    newest = max((int(item["metadata"]["resourceVersion"]) for item in items), default=1)
    return {"metadata": {"resourceVersion": str(newest)}, "items": items}


def _cgroup(pid: int) -> str:
    return Path(f"/proc/{pid}/cgroup").read_text()


def _write(path: Path, document: object) -> None:
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")


def read(name: str, file: str) -> Any:
    return json.loads((FOLDER / name / file).read_text())


def recorded() -> list[str]:
    return sorted(path.name for path in FOLDER.iterdir())
