"""A part that reads the pod-resources socket of a fake kubelet."""

from collections.abc import AsyncIterator

import pytest

from podgpu.kube.kubelet.podresources import ALLOCATABLE, PodResources
from tests.fakekubelet.kubelet import POD_RESOURCES, FakeKubelet, Reply, kubelet_root
from tests.fakekubelet.rig import Clock, reading


@pytest.fixture
async def kubelet() -> AsyncIterator[FakeKubelet]:
    with kubelet_root() as root:
        async with FakeKubelet(root, sockets=(POD_RESOURCES,)) as fake:
            fake.replies[ALLOCATABLE] = Reply(b"")
            yield fake


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def part(kubelet: FakeKubelet, clock: Clock) -> AsyncIterator[PodResources]:
    async with reading(kubelet, clock=clock) as opened:
        yield opened
