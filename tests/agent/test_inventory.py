"""What there is to share: from whoever knows, and never waited for."""

import asyncio
from collections import Counter

import pytest
from msgspec.structs import replace

from podgpu import sharing
from podgpu.agent.inventory import InventoryCollector
from podgpu.kube.api import ApiServer
from podgpu.kube.kubelet.podresources import PodResourceLists
from podgpu.kube.object_watch import WatchTiming
from podgpu.kube.resource_claims import ResourceClaims
from podgpu.model import Allocation, Device, DynamicAllocation, Gpu, PartStatus, Pod
from podgpu.supervise import LatestReply, Supervisor
from tests.fakeapi.recorded import NODE, dynamic_resources
from tests.fakeapi.server import FakeApi
from tests.patience import PATIENCE, until

LISTED = DynamicAllocation(
    namespace="team-c",
    pod="p",
    container="main",
    claim_namespace="team-c",
    claim_name="shared-gpu",
    driver="gpu.nvidia.com",
    pool="node-1",
    device="gpu-0",
)


GIVEN, ON_PAGE = (
    Allocation(namespace="ns", pod=pod, container="main", resource="nvidia.com/gpu", device_id="GPU-1")
    for pod in ("given", "on-page")
)


class Kubelet:
    name = "podresources"

    def __init__(self, age: float | None = 0.0) -> None:
        self.errors: Counter[str] = Counter()
        self._age = age

    async def read(self) -> PodResourceLists:
        return PodResourceLists(devices=(GIVEN,), dynamic=(LISTED,))

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=self._age == 0, age_seconds=self._age)


async def test_a_claim_that_only_the_kubelet_names_is_looked_up() -> None:
    """A claim made from a template has no name in the kubelet's own list of pods."""
    pod = Pod(namespace="team-c", name="p", uid="u", phase="Running")
    async with FakeApi(objects=dynamic_resources()) as fake:
        api = ApiServer(fake.url)
        claims = ResourceClaims(api, NODE, timing=WatchTiming(relist=0.05))
        stock = InventoryCollector(patience=1.0, allocations=Kubelet(), dynamics=claims)
        running = asyncio.create_task(Supervisor().run(stock.works()))
        try:
            await stock.take((), (pod,))
            await until(lambda: bool(claims.claims()))
            taken = await stock.take((), (pod,))
        finally:
            running.cancel()
            await stock.close()
            await api.close()
    assert [claim.name for claim in taken.resource_claims] == ["shared-gpu"]
    assert [status.name for status in stock.statuses()] == ["podresources", "resource-claims"]


@pytest.mark.parametrize(
    ("age", "believed"), [(0.0, True), (599.0, True), (600.0, True), (601.0, False), (None, False)]
)
async def test_the_last_map_is_believed_for_ten_minutes_and_no_longer(age: float | None, believed: bool) -> None:
    """After that, what the source of the numbers says is better than nothing."""
    stock = InventoryCollector(patience=1.0, allocations=Kubelet(age))
    taken = await stock.take((), (), [ON_PAGE], "dcgm")
    expected = ((GIVEN,), "podresources", (LISTED,)) if believed else ((ON_PAGE,), "dcgm", ())
    (allocation,) = taken.allocations
    source = taken.claim(allocation, "GPU-1", system="any", share=1.0).source
    assert (taken.allocations, source, taken.dynamic) == expected
    await stock.close()


class SlicingKubelet(Kubelet):
    """Has a card with four replicas, of which `offered` are healthy."""

    offered = 4

    async def read(self) -> PodResourceLists:
        resource = "nvidia.com/gpu.shared"
        return PodResourceLists(
            devices=(replace(GIVEN, resource=resource, device_id="GPU-1::0"),),
            allocatable=tuple((resource, f"GPU-1::{number}") for number in range(self.offered)),
        )


async def test_no_share_grows_when_an_xid_makes_a_free_replica_unhealthy() -> None:
    kubelet, card = SlicingKubelet(), Device(gpu=Gpu(uuid="GPU-1", index=0))
    stock = InventoryCollector(patience=PATIENCE, allocations=kubelet)
    shares = []
    for kubelet.offered in (4, 3, 3, 1):  # the last is another configuration
        taken = await stock.take((card,), ())
        shares += [claim.share for claim in sharing.claims(taken)]
    await stock.close()
    assert shares == [0.25, 0.25, 0.25, 1.0]


async def test_who_does_not_answer_is_not_waited_for_and_not_asked_twice() -> None:
    asked, answer = 0, asyncio.Event()

    async def ask() -> int:
        nonlocal asked
        asked += 1
        await answer.wait()
        return asked

    latest = LatestReply(ask, patience=0.01)
    assert [await latest.get(), await latest.get()] == [None, None]
    assert asked == 1
    answer.set()
    assert [await latest.get(), await latest.get()] == [1, 2]


async def test_two_who_wait_for_an_answer_both_get_it() -> None:
    async def ask() -> int:
        await asyncio.sleep(0)
        return 1

    latest = LatestReply(ask, patience=PATIENCE)
    assert list(await asyncio.gather(latest.get(), latest.get())) == [1, 1]
