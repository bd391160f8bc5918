"""What Kubernetes gave to whom follows the watches, and a mistake in it leaves the rest standing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from podgpu.cluster import allocations as module
from podgpu.cluster.allocations import KubeAllocations, wanted_objects
from podgpu.kube.api import ApiServer
from podgpu.kube.cluster_watch import ClusterWatch
from podgpu.supervise import Supervisor
from tests.fakeapi.recorded import NODE
from tests.fakeapi.server import FakeApi
from tests.fakeapi.whole import recorded_cluster
from tests.patience import PATIENCE


@asynccontextmanager
async def following(fake: FakeApi) -> AsyncIterator[KubeAllocations]:
    async with fake:
        api = ApiServer(fake.url)
        allocations = KubeAllocations(ClusterWatch(api, wanted_objects()))
        running = asyncio.create_task(allocations.run(Supervisor()))
        try:
            async with asyncio.timeout(PATIENCE):
                await allocations.complete()
            yield allocations
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await allocations.close()
            await api.close()


async def test_a_pod_that_goes_is_no_longer_a_tenant() -> None:
    fake = recorded_cluster()
    async with following(fake) as allocations:
        before = allocations.newest()
        snapshot = before.nodes[NODE].snapshot
        assert snapshot is not None
        gone = next(card.tenants[0].container for card in snapshot.cards if card.tenants)
        assert {pod.name for pod in allocations.pods_of(NODE) or ()} >= {gone.pod}
        (item,) = (pod for pod in fake.pods if pod["metadata"]["name"] == gone.pod)
        item["metadata"]["resourceVersion"] = "9999"
        fake.event("DELETED", item)
        async with asyncio.timeout(PATIENCE):
            after = (await allocations.changed(before)).nodes[NODE].snapshot
    assert after is not None
    assert gone not in {tenant.container for card in after.cards for tenant in card.tenants}


async def test_a_mistake_in_working_it_out_is_a_part_that_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(module, "allocate", broken)
    async with following(recorded_cluster()) as allocations:
        parts = {part.name: part for part in allocations.parts()}
    assert not allocations.newest().nodes
    assert [name for name, part in parts.items() if not part.up] == ["allocations"]
