"""The recorded DRA cluster, from its real gRPC answers and its API server's objects at their real paths."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from podgpu.agent.attribution import Attributed, Attribution
from podgpu.kube.api import ApiServer
from podgpu.kube.kubelet.podresources import PodResources
from podgpu.kube.kubelet.pods_api import PodsApi
from podgpu.kube.object_watch import PodWatch
from podgpu.kube.resource_claims import ResourceClaims
from podgpu.model import Device, Gpu, Instance, MigInstance
from podgpu.supervise import Supervisor
from tests.agent.stage import pod_resources, pods_api
from tests.fakeapi.recorded import NODE, dynamic_resources, listed
from tests.fakeapi.server import FakeApi
from tests.fakekubelet.kubelet import FakeKubelet, Reply, kubelet_root
from tests.patience import PATIENCE

NOTHING = {f"/v1.PodResourcesLister/{method}": Reply(b"") for method in ("List", "GetAllocatableResources")}
CLUSTER = "kubernetes-1.36.4-dra"
TOLD_MIG, NAMELESS_MIG = "MIG-0a1b2c3d-7777-5111-8111-000000000070", "MIG-made-on-demand"


def uuid(number: int) -> str:
    return f"GPU-7f3c9a1{number}-52d4-4b8e-9c60-1a2b3c4d5e6{number}"


def mig(uuid: str, start: int) -> Instance:
    return Instance(
        mig=MigInstance(uuid=uuid, gpu_instance_id=7 + start, compute_instance_id=0, profile="1g.18gb", start=start)
    )


def cards(at: float) -> tuple[Device, ...]:
    """The recorded cluster's made-up cards. The last has the instances of the claims, and those of a device plugin."""
    instances = [mig(TOLD_MIG, 0), mig(NAMELESS_MIG, 1)]
    instances += [mig(f"MIG-0a1b2c3d-1111-5111-8111-00000000000{number}", 1 + number) for number in (1, 2)]
    return tuple(
        Device(
            gpu=Gpu(uuid=uuid(number), index=number, minor=number),
            at=at,
            instances=tuple(instances) if number == 7 else (),
        )
        for number in range(8)
    )


def pods(*, with_devices: bool) -> list[dict[str, Any]]:
    """The recorded pods, also as a kubelet before 1.36 leaves them: without the devices in their status."""
    items: list[dict[str, Any]] = listed(CLUSTER)["items"]
    for status in (status for item in items for status in item["status"].get("containerStatuses", ())):
        if not with_devices:
            status.pop("allocatedResourcesStatus", None)
    return items


async def attributed(attribution: Attribution, done: Callable[[Attributed], bool]) -> Attributed:
    for cycle in range(int(PATIENCE / 0.02)):
        found = await attribution.attribute(cards(float(cycle)), float(cycle))
        if done(found):
            return found
        await asyncio.sleep(0.02)
    raise AssertionError(f"{found}")


def all_up(snapshot: Attributed) -> bool:
    parts = {part.name: part.up for part in snapshot.parts}
    return parts.get("resource-claims", False) and all(parts.values())


@pytest.mark.parametrize(
    ("source", "with_devices", "lists"),
    [("api", True, True), ("api", False, True), ("api", False, False), ("kubelet", True, True)],
    ids=["status", "list", "reserved", "kubelet alone"],
)
async def test_every_container_is_on_the_device_of_its_request(source: str, with_devices: bool, lists: bool) -> None:
    """The kubelet lists both instances under both containers of `dra-mig`; one of them has no UUID to go by."""
    items = pods(with_devices=with_devices)
    with kubelet_root() as root:
        async with (
            FakeKubelet(root) as kubelet,
            FakeApi(pods=items, version=5300, objects=dynamic_resources()) as server,
        ):
            kubelet.replies = pods_api(CLUSTER) | (pod_resources(CLUSTER) if lists else NOTHING)
            api, allocations = ApiServer(server.url), PodResources(root, deadline=PATIENCE)
            attribution = Attribution(
                interval=0.5,
                allocations=allocations,
                dynamics=ResourceClaims(api, NODE),
                pod_sources=[PodWatch(api, NODE) if source == "api" else PodsApi(root, deadline=PATIENCE)],
                to_close=[allocations, api],
            )
            running = asyncio.create_task(attribution.run(Supervisor()))
            try:
                snapshot = await attributed(attribution, all_up)
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
                await attribution.close()
    tenants = [tenant for card in snapshot.cards for tenant in card.tenants]
    claims = [claim for tenant in tenants for claim in tenant.claims if claim.system == "dra"]
    assert {
        (claim.container.pod, claim.container.container, claim.mig or claim.gpu, claim.share) for claim in claims
    } == {
        ("dra-shared-1", "a", uuid(5), 0.5),
        ("dra-shared-2", "a", uuid(5), 0.5),
        ("dra-own", "a", uuid(6), 0.5),
        ("dra-own", "b", uuid(6), 0.5),
        ("dra-mig", "left", TOLD_MIG, 1.0),
        ("dra-mig", "right", NAMELESS_MIG, 1.0),
    }
    told_by = "pod status" if with_devices else "podresources" if lists else "resourceclaim"
    assert {claim.source for claim in claims} == {told_by}
    uids = {item["metadata"]["name"]: item["metadata"]["uid"] for item in items}
    assert all(claim.container.pod_uid == uids[claim.container.pod] for claim in claims)
    # Neither its plugin, which is not there any more, nor an annotation says which card it has.
    assert {held.container.pod for held in snapshot.unplaced or ()} == ({"share-1"} if lists else set())
