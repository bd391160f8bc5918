"""A whole cluster's objects as the reader keeps them, from the JSON that an API server writes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from podgpu.cluster.allocations import wanted_objects
from podgpu.kube.api import ApiServer
from podgpu.kube.cluster_watch import NODES, ClusterWatch
from podgpu.model import KubeObjects
from podgpu.supervise import Supervisor
from tests.fakeapi.recorded import listed, owners
from tests.fakeapi.server import FakeApi
from tests.patience import PATIENCE

DYNAMIC = "/apis/resource.k8s.io/v1"


def recorded_cluster(pods: str = "kubernetes-1.36.4") -> FakeApi:
    """Play the recorded cluster: its node, pods and owners, and dynamic resources where it has them."""
    found = listed(pods)
    lists = {NODES: listed(name="api-nodes.json")["items"]}
    if pods.endswith("-dra"):
        lists[f"{DYNAMIC}/resourceclaims"] = listed(pods, "api-resourceclaims.json")["items"]
        lists[f"{DYNAMIC}/resourceslices"] = listed(pods, "api-resourceslices.json")["items"]
    return FakeApi(pods=found["items"], version=5, objects=owners(), lists_of=lists)


@asynccontextmanager
async def reading(fake: FakeApi, **options: Any) -> AsyncIterator[ClusterWatch]:
    async with fake:
        api = ApiServer(fake.url, connect_seconds=PATIENCE, answer_seconds=PATIENCE)
        reader = ClusterWatch(api, wanted_objects(), **options)
        running = asyncio.create_task(reader.run(Supervisor()))
        try:
            yield reader
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await reader.close()
            await api.close()


async def objects_of(fake: FakeApi) -> KubeObjects:
    async with reading(fake) as reader, asyncio.timeout(PATIENCE):
        return await reader.complete()
