"""What the tests of the kubelet's sockets share."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from podgpu.kube.kubelet.podresources import PodResourceLists, PodResources
from podgpu.model import PartStatus
from tests.fakekubelet._gen.podresources_pb2 import (
    ClaimDevice,
    ClaimEntry,
    ContainerEntry,
    DeviceEntry,
    ListResponse,
    PodEntry,
)
from tests.fakekubelet.kubelet import FakeKubelet
from tests.patience import PATIENCE

RECORDED = Path(__file__).parent.parent / "recorded"


@asynccontextmanager
async def reading(kubelet: FakeKubelet, **options: Any) -> AsyncIterator[PodResources]:
    """Give the part that reads the pod-resources socket, and close it at the end."""
    part = PodResources(kubelet.root, **{"deadline": PATIENCE, **options})
    try:
        yield part
    finally:
        await part.close()


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def recorded(cluster: str, name: str) -> bytes:
    return (RECORDED / cluster / f"{name}.bin").read_bytes()


def given(
    *ids: bytes,
    resource: bytes = b"nvidia.com/gpu",
    pod: bytes = b"p",
    namespace: bytes = b"n",
    container: bytes = b"c",
) -> bytes:
    """Return a pod-resources answer: one pod that holds the devices."""
    devices = [DeviceEntry(resource=resource, ids=[each]) for each in ids]
    holder = ContainerEntry(name=container, devices=devices)
    return ListResponse(pods=[PodEntry(name=pod, namespace=namespace, containers=[holder])]).SerializeToString()


def given_dynamically(
    *devices: tuple[bytes, ...], claim: bytes, pod: bytes, namespace: bytes, container: bytes
) -> bytes:
    """Return a pod-resources answer: one pod with a claim on the devices, each a driver, a pool and a device."""
    entries = [ClaimDevice(driver=driver, pool=pool, device=device) for driver, pool, device in devices]
    entry = ClaimEntry(name=claim, namespace=namespace, devices=entries)
    holder = ContainerEntry(name=container, claims=[entry])
    return ListResponse(pods=[PodEntry(name=pod, namespace=namespace, containers=[holder])]).SerializeToString()


def ids(allocated: PodResourceLists) -> list[str]:
    return [each.device_id for each in allocated.devices]


def reason(status: PartStatus) -> str:
    return status.fault.reason if status.fault else ""
