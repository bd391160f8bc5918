"""What the tests of the kubelet's sockets share."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from podgpu.kube._gen import pods_pb2
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
from tests.fakekubelet.kubelet import FakeKubelet, Reply
from tests.patience import PATIENCE

ADDED, SYNCED = 1, 4  # kinds of events of a watch
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


def running_pod(namespace: str, name: str, uid: str, container: str, container_id: str) -> bytes:
    """Return a pod as the Pods API has it."""
    status = pods_pb2.ContainerStatus(name=container, container_id=f"containerd://{container_id}")
    return pods_pb2.PodMessage(
        metadata=pods_pb2.Metadata(namespace=namespace, name=name, uid=uid),
        status=pods_pb2.PodStatus(phase="Running", containers=[status]),
    ).SerializeToString()


def pods_api(*pods: bytes) -> dict[str, Reply]:
    """Return the answers of a Pods API: a list, and a watch that begins with these pods and then is silent."""
    events = [*(pods_pb2.WatchEvent(type=ADDED, pod=pod) for pod in pods), pods_pb2.WatchEvent(type=SYNCED)]
    return {
        "/v1alpha1.Pods/ListPods": Reply(pods_pb2.ListResponse(pods=pods).SerializeToString()),
        "/v1alpha1.Pods/WatchPods": Reply(*(event.SerializeToString() for event in events), hangs=True),
    }


def ids(allocated: PodResourceLists) -> list[str]:
    return [each.device_id for each in allocated.devices]


def reason(status: PartStatus) -> str:
    return status.fault.reason if status.fault else ""
