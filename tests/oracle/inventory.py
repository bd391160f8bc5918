"""Puts a case in front of podgpu the way a node does: the kubelet's sockets, and objects of the API server."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from podgpu import sharing
from podgpu.kube._gen.pods_pb2 import ListResponse as PodList
from podgpu.kube.kubelet.podresources import PodResourceLists, PodResources
from podgpu.kube.kubelet.pods_api import PodsApi
from podgpu.kube.pod_object import decode_pod, to_pod
from podgpu.kube.resource_objects import (
    decode_claim,
    decode_device,
    decode_slice,
    newest,
    to_claim,
    to_device,
)
from podgpu.model import Pod, PoolDevice, ResourceClaim
from podgpu.sharing.inventory import Inventory
from tests.fakekubelet._gen.podresources_pb2 import (
    AllocatableResponse,
    ClaimDevice,
    ClaimEntry,
    ContainerEntry,
    DeviceEntry,
    ListResponse,
    PodEntry,
)
from tests.fakekubelet.kubelet import FakeKubelet, Reply, kubelet_root
from tests.oracle.case import Case, device
from tests.oracle.pod_bytes import encoded
from tests.patience import PATIENCE

NOTES = sharing.annotations()
SECONDS = PATIENCE  # there may be thousands of ids, and the machine may be busy


async def inventory(case: Case) -> Inventory:
    """Read the node. Both sources of pods are read, and they must agree."""
    with kubelet_root() as root:
        async with FakeKubelet(root) as kubelet:
            kubelet.replies.update(_replies(case))
            reader = PodResources(root, deadline=SECONDS)
            allocated = await reader.read()
            await reader.close()
            streamed = await _streamed(root)
            await reader.close()
    assert reader.status().up and not reader.errors, reader.status()
    # Some cases leave out the node's name, so that the API's pods would be waiting for one.
    pods = [replace(to_pod(decode_pod(pod), NOTES), waiting=None) for pod in case.pods or ()]
    assert sorted(pods, key=_order) == list(streamed)
    return _inventory(case, allocated, pods)


def _inventory(case: Case, allocated: PodResourceLists, pods: list[Pod]) -> Inventory:
    return Inventory(
        [device(gpu, case.kind) for gpu in case.gpus],
        allocated.devices,
        allocated.allocatable,
        pods,
        dynamic=allocated.dynamic,
        resource_claims=_claims(case),
        pool_devices=_pool(case),
        namespaces=_own_namespaces(case),
    )


def _own_namespaces(case: Case) -> set[str]:
    """Return what the administrator would say of a sharing system whose namespace was renamed.

    Pods there were given cards, and by the truth none of them is theirs.
    """
    given = {allocation.namespace for allocation in case.given or ()}
    return given - {truth.namespace for truth in case.truth or ()}


def _order(pod: Pod) -> tuple[str, str, str]:
    return pod.namespace, pod.name, pod.uid


async def _streamed(root: Path) -> tuple[Pod, ...]:
    api = PodsApi(root, deadline=SECONDS, annotations=NOTES)
    task = asyncio.create_task(api.run())
    try:
        async with asyncio.timeout(SECONDS):
            while (pods := api.pods()) is None:  # noqa: ASYNC110, it has no event to wait for
                await asyncio.sleep(0)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert not api.errors["bad_pod"]
    return pods


def _replies(case: Case) -> dict[str, Reply]:
    offered = [
        DeviceEntry(resource=resource.encode(), ids=[device_id.encode() for device_id in ids])
        for resource, ids in (case.allocatable or {}).items()
    ]
    pods = [encoded(msgspec.json.decode(pod)) for pod in case.pods or ()]
    return {
        "/v1.PodResourcesLister/List": Reply(ListResponse(pods=_entries(case)).SerializeToString()),
        "/v1.PodResourcesLister/GetAllocatableResources": Reply(
            AllocatableResponse(devices=offered).SerializeToString()
        ),
        "/v1alpha1.Pods/ListPods": Reply(PodList(pods=pods).SerializeToString()),
    }


def _entries(case: Case) -> Iterator[PodEntry]:
    for allocation in case.given or ():
        devices = [DeviceEntry(resource=allocation.resource.encode(), ids=[id_.encode() for id_ in allocation.ids])]
        yield _entry(
            allocation.namespace,
            allocation.pod,
            ContainerEntry(name=allocation.container.encode(), devices=devices),
        )
    for row in case.dynamic:
        claimed = ClaimDevice(driver=row.driver.encode(), pool=row.pool.encode(), device=row.device.encode())
        claim = ClaimEntry(name=row.claim.encode(), namespace=row.namespace.encode(), devices=[claimed])
        yield _entry(row.namespace, row.pod, ContainerEntry(name=row.container.encode(), claims=[claim]))


def _entry(namespace: str, pod: str, container: ContainerEntry) -> PodEntry:
    return PodEntry(name=pod.encode(), namespace=namespace.encode(), containers=[container])


def _claims(case: Case) -> Iterator[ResourceClaim]:
    found = (to_claim(decode_claim(msgspec.json.encode(claim))) for claim in case.claims)
    return (claim for claim in found if claim)


def _pool(case: Case) -> Iterator[PoolDevice]:
    for spec in newest(decode_slice(msgspec.json.encode(item)).spec for item in case.slices):
        yield from (to_device(spec, decode_device(device)) for device in spec.devices or ())
