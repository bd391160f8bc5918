"""The bill beside a tenant whose annotation was removed before the agent started: the same, within one per cent."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from podgpu.model import Allocation, Pod
from podgpu.sharing.hami.annotation import DEVICES_ALLOCATED
from podgpu.sources.simulator.kubernetes import DemoAllocations
from tests.agent.test_attribution import Kubelet
from tests.agent.whole import test_two_tenants
from tests.agent.whole.test_two_tenants import CHEAT, GPU, HONEST, OTHER, Node, bill, billed, joules, listed, pod

node = test_two_tenants.node  # the fixture


class SharingKubelet(Kubelet):
    """Both tenants were given as many ids of the same kind. `offered` is what the plugin has."""

    def __init__(self, resource: str, ids: Sequence[str], offered: Sequence[str]) -> None:
        super().__init__()
        self._lists = DemoAllocations(
            tuple(
                Allocation(namespace="ns", pod=name, container="main", resource=resource, device_id=device_id)
                for place, name in enumerate(("honest", "cheat"))
                for device_id in ids[place::2]
            ),
            tuple((resource, device_id) for device_id in offered),
        )

    async def read(self) -> DemoAllocations:
        return self._lists


UNITS = [f"0-{number}" for number in range(80)]
PARTS = [f"{GPU}-{number}" for number in range(8)]
BLOCKS = [f"{GPU}-_-{number}" for number in range(80)]
ALLOCATED = '{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"50","koordinator.sh/gpu-memory-ratio":"50"}}]}'
# By system: a resource, ids of both tenants, those that the plugin offers, limits, and the annotation of a pod.
SHARED: dict[str, tuple[str, list[str], list[str], dict[str, str], dict[str, str]]] = {
    "hami without limits": (
        "nvidia.com/gpu",
        PARTS[:2],
        PARTS,
        {"nvidia.com/gpu": "1"},
        {DEVICES_ALLOCATED: f"{GPU},NVIDIA,81920,0:;"},
    ),
    "volcano memory": (
        "volcano.sh/gpu-memory",
        UNITS[:40],
        UNITS,
        {"volcano.sh/gpu-memory": "20"},
        {"volcano.sh/gpu-index": "0"},
    ),
    "volcano vgpu without limits": (
        "volcano.sh/vgpu-number",
        PARTS[:2],
        PARTS,
        {"volcano.sh/vgpu-number": "1"},
        {"volcano.sh/vgpu-ids-new": f"{GPU},NVIDIA,81920,0:"},
    ),
    "gpushare": (
        "aliyun.com/gpu-mem",
        BLOCKS[:40],
        BLOCKS,
        {"aliyun.com/gpu-mem": "20"},
        {"ALIYUN_COM_GPU_MEM_IDX": "0"},
    ),
    "koordinator": (
        "koordinator.sh/gpu-core",
        [],
        [],
        {"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50"},
        {"scheduling.koordinator.sh/device-allocated": ALLOCATED},
    ),
}


@pytest.mark.parametrize("others", [[], [OTHER]], ids=["one card", "two cards"])
@pytest.mark.parametrize("later", [{}, "nothing"], ids=["removed", "garbled"])
@pytest.mark.parametrize("system", SHARED)
async def test_who_removes_his_annotation_before_the_agent_starts_still_pays(
    node: Node, system: str, later: dict[str, str] | str, others: list[str]
) -> None:
    """Use cannot be measured here. On two cards, his process shows which is his."""
    resource, ids, offered, limits, notes = SHARED[system]
    processes = [replace(listed(node.start(node.pod(uid)), 0.0), sm_busy_us=None) for uid in (HONEST, CHEAT)]

    def tenant(uid: str, name: str, written: dict[str, str]) -> Pod:
        plain = pod(uid, name)
        return replace(plain, containers=(replace(plain.containers[0], limits=limits),), annotations=written)

    cards = [
        await billed(
            *processes,
            busy=0.9,
            kubelet=SharingKubelet(resource, ids, offered),
            pods=[tenant(HONEST, "honest", notes), tenant(CHEAT, "cheat", written)],
            others=others,
        )
        for written in (notes, dict.fromkeys(notes, later) if isinstance(later, str) else later)
    ]
    fair, forged = cards
    for name in ("honest", "cheat"):
        assert joules(forged, name) == pytest.approx(joules(fair, name), rel=0.01)
        assert bill(forged, name).allocated_us == pytest.approx(bill(fair, name).allocated_us, rel=0.01)
        assert bill(fair, name).allocated_us > 10_000_000
    assert joules(fair, "cheat") > 1000
