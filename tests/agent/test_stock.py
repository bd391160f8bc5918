"""What there is to share: from whoever knows, and never waited for."""

import asyncio
from collections import Counter

from podgpu.agent.stock import Latest, Stock
from podgpu.kube.apiserver import ApiServer
from podgpu.kube.podresources import Allocated
from podgpu.kube.resource_claims import ClaimTiming, ResourceClaims
from podgpu.model import DynamicAllocation, PartStatus, Pod
from tests.fakeapi.patience import until
from tests.fakeapi.recorded import NODE, dynamic_resources
from tests.fakeapi.server import FakeApi

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


class Kubelet:
    name = "podresources"

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter()

    async def read(self) -> Allocated:
        return Allocated(dynamic=(LISTED,))

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=True, age_seconds=0.0)


async def test_a_claim_that_only_the_kubelet_names_is_looked_up() -> None:
    """A claim made from a template has no name in the kubelet's own list of pods."""
    pod = Pod(namespace="team-c", name="p", uid="u", phase="Running")
    async with FakeApi(objects=dynamic_resources()) as fake:
        api = ApiServer(fake.url)
        claims = ResourceClaims(api, NODE, timing=ClaimTiming(refresh=0.05))
        stock = Stock(patience=1.0, systems=(), allocations=Kubelet(), dynamics=claims)
        running = asyncio.create_task(stock.run())
        try:
            await stock.take((), (pod,))
            await until(lambda: bool(claims.claims()))
            taken = await stock.take((), (pod,))
        finally:
            running.cancel()
            stock.close()
            await api.close()
    assert [one.name for one in taken.resource_claims] == ["shared-gpu"]
    assert [status.name for status in stock.statuses()] == ["podresources", "resource-claims"]


async def test_who_does_not_answer_is_not_waited_for_and_not_asked_twice() -> None:
    asked, answer = 0, asyncio.Event()

    async def ask() -> int:
        nonlocal asked
        asked += 1
        await answer.wait()
        return asked

    latest = Latest(ask, patience=0.01)
    assert [await latest.get(), await latest.get()] == [None, None]
    assert asked == 1
    answer.set()
    assert [await latest.get(), await latest.get()] == [1, 2]
