"""An agent over the fake library, a real kubelet socket and a real API server, in the test's own event loop."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from podgpu.agent.attribution import Attribution
from podgpu.agent.loop import Agent
from podgpu.host.procfs import Procfs
from podgpu.kube.api import ApiServer
from podgpu.kube.kubelet.podresources import PodResources
from podgpu.kube.resource_claims import ResourceClaims
from podgpu.kube.workloads import Workloads
from podgpu.model import Balance, Booking, Card, Claim, PartStatus, Pod, Rest, Snapshot
from podgpu.model.ports import PodSource
from podgpu.sources.nvml.source import NvmlSource
from tests.fakeapi.recorded import NODE
from tests.fakekubelet.kubelet import FakeKubelet, Reply
from tests.fakenvml.fake_node import FakeNode, environment
from tests.patience import PATIENCE
from tests.tree import SETTINGS

if TYPE_CHECKING:
    import pytest  # benchmarks run where it is not installed

RECORDED = Path(__file__).parents[1] / "recorded"
INTERVAL = 0.5


class StillPods:
    """A list of pods that is always there, and changes only when the test says so."""

    name = "pods"

    def __init__(self, pods: tuple[Pod, ...]) -> None:
        self.errors: Counter[str] = Counter()
        self._pods = pods

    async def run(self) -> None:
        return

    def change(self, pods: tuple[Pod, ...]) -> None:
        self._pods = pods

    def pods(self) -> tuple[Pod, ...]:
        return self._pods

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=True)


def answer(cluster: str, name: str) -> Reply:
    return Reply((RECORDED / cluster / name).read_bytes())


def pod_resources(cluster: str) -> dict[str, Reply]:
    return {
        "/v1.PodResourcesLister/List": answer(cluster, "podresources-v1-list.bin"),
        "/v1.PodResourcesLister/GetAllocatableResources": answer(cluster, "podresources-v1-allocatable.bin"),
    }


def pods_api(cluster: str) -> dict[str, Reply]:
    return {
        "/v1alpha1.Pods/ListPods": answer(cluster, "podsapi-list.bin"),
        "/v1alpha1.Pods/WatchPods": Reply(hangs=True),
    }


def write_proc(root: Path, pid: int, cgroup: str, start: str = "100", command: str = "python3") -> None:
    """A process as /proc shows it, as far as podgpu reads it."""
    folder = root / str(pid)
    folder.mkdir(parents=True)
    fields = ["S", *(["0"] * 18), start, *(["0"] * 30)]
    (folder / "stat").write_text(f"{pid} ({command}) {' '.join(fields)}\n")
    (folder / "cgroup").write_text(cgroup)


@asynccontextmanager
async def agent_over(
    library: Path,
    folder: Path,
    node: FakeNode,
    monkeypatch: "pytest.MonkeyPatch",
    *,
    kubelet: FakeKubelet,
    pod_sources: list[PodSource],
    api: ApiServer | None = None,
    dynamics: ResourceClaims | None = None,
) -> AsyncIterator[Agent]:
    node.write(folder / "script")
    for name, value in environment(library, folder / "script").items():
        monkeypatch.setenv(name, value)
    allocations, workloads = PodResources(kubelet.root, deadline=PATIENCE), Workloads(api)
    attribution = Attribution(
        interval=INTERVAL,
        allocations=allocations,
        dynamics=dynamics,
        pod_sources=pod_sources,
        processes=Procfs(folder / "proc"),
        workloads=workloads,
        to_close=[allocations, workloads, *([api] if api else [])],
    )
    source = NvmlSource(interval=INTERVAL, library=None)
    agent = Agent(source, node=NODE, interval=INTERVAL, settings=SETTINGS, attribution=attribution)
    running = asyncio.create_task(agent.run())
    try:
        yield agent
    finally:
        running.cancel()
        await agent.close()


async def snapshot_when(agent: Agent, what: str, condition: Callable[[Snapshot], object]) -> Snapshot:
    found = agent.snapshot
    try:
        async with asyncio.timeout(PATIENCE):
            while not condition(found):
                found = await agent.changed(found)
    except TimeoutError:
        raise AssertionError(f"{what}: {found}") from None
    return found


def claims(snapshot: Snapshot) -> list[Claim]:
    return [claim for card in snapshot.cards for tenant in card.tenants for claim in tenant.claims]


def check_balance(snapshot: Snapshot) -> None:
    """Σ containers + unattributed = device, to the byte, the microsecond and the millijoule."""
    for card in snapshot.cards:
        if card.balance is not None:
            check_card(card, card.balance)


def check_card(card: Card, balance: Balance) -> None:
    lines: list[Booking | Rest] = [tenant.booking for tenant in (*card.tenants, *card.ended)]
    lines += card.rest
    assert sum(line.busy_us for line in lines) == balance.busy_us
    assert sum(line.energy_mj for line in lines) == balance.energy_mj
    if balance.memory_bytes is not None:
        assert sum(line.memory_bytes or 0 for line in lines) == balance.memory_bytes
