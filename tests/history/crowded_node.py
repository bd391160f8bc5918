"""Snapshots of a crowded node, one after the other: 8 GPUs with 5 tenants each, all of whose numbers change."""

import random
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from uuid import NAMESPACE_OID, uuid5

from msgspec.structs import replace

from podgpu.agent.attribution import Attribution
from podgpu.insight import InsightSettings, conclude
from podgpu.kube.kubelet.podresources import PodResourceLists
from podgpu.model import (
    Allocation,
    Device,
    Fault,
    Holder,
    Owner,
    PartStatus,
    Pod,
    PodContainer,
    Process,
    Report,
    Snapshot,
)
from podgpu.sources.simulator.source import Simulator
from tests.agent.stage import StillPods

TENANTS = 5
BORN = 1_800_000_000.0
GIB = 1 << 30


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now

    def wall(self) -> float:
        return BORN + self.now


async def crowded_snapshots(number: int, interval: float = 5.0, seed: int = 1) -> AsyncIterator[Snapshot]:
    """Yield as many snapshots. The readings are those of the simulator; each process has a load of its own."""
    clock, chance = _Clock(), random.Random(seed)
    simulator = Simulator(seed=seed, clock=clock, wall=clock.wall)
    uuids = [device.gpu.uuid for device in (await simulator.read()).devices]
    attribution = Attribution(
        interval=interval,
        allocations=_Kubelet(uuids),
        pod_sources=[StillPods(tuple(map(_pod, range(TENANTS * len(uuids)))))],
        processes=_Processes(TENANTS * len(uuids)),
    )
    settings = InsightSettings(idle_after=1800.0)
    for _ in range(number):
        clock.now += interval * chance.uniform(0.99, 1.01)
        report = _crowded(await simulator.read(), chance, interval)
        found = await attribution.attribute(report.devices, clock.wall())
        status = PartStatus(name="nvml", up=True, duration_seconds=chance.uniform(0.01, 0.02), age_seconds=0.0)
        snapshot = Snapshot(
            node="crowded",
            taken_at=clock.wall(),
            interval_seconds=interval,
            version="1",
            cards=found.cards,
            pods=found.pods,
            sharing=found.sharing,
            parts=(status, *found.parts),
        )
        yield conclude(snapshot, settings)


def _crowded(report: Report, chance: random.Random, interval: float) -> Report:
    return replace(report, devices=tuple(_device(device, chance, interval) for device in report.devices))


def _device(device: Device, chance: random.Random, interval: float) -> Device:
    card = device.gpu.index
    loads = [chance.random() ** 2 for _ in range(TENANTS)]
    busy = chance.uniform(0.5, 0.99) / sum(loads)
    return replace(
        device,
        gpu=replace(device.gpu, mig_enabled=False),
        instances=(),
        windows=(),
        log=None,
        processes=tuple(
            Process(
                pid=card * TENANTS + tenant + 1,
                kinds=("compute",),
                memory_bytes=10 * GIB + (chance.randrange(64) << 21),
                sm_busy_us=round(load * busy * interval * 1e6),
                sm_ratio=round(load * busy, 4),
                memory_ratio=round(load * busy / 2, 2),
                encoder_ratio=0.0,
                decoder_ratio=0.0,
            )
            for tenant, load in enumerate(loads)
        ),
    )


class _Kubelet:
    name = "podresources"

    def __init__(self, uuids: list[str]) -> None:
        self.errors: Counter[str] = Counter()
        self._given = PodResourceLists(
            devices=tuple(
                Allocation(
                    namespace=_namespace(card * TENANTS + tenant),
                    pod=f"pod-{card * TENANTS + tenant}",
                    container="main",
                    resource="nvidia.com/gpu.shared",
                    device_id=f"{uuid}::{tenant}",
                )
                for card, uuid in enumerate(uuids)
                for tenant in range(TENANTS)
            )
        )

    async def read(self) -> PodResourceLists:
        return self._given

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=True, age_seconds=0.0)


class _Processes:
    name = "procfs"

    def __init__(self, number: int) -> None:
        self._holders = {
            pod + 1: Holder(
                pid=pod + 1,
                kind="pod",
                start_time=pod,
                owner=Owner(pod_uid=_uid(pod), container_id=_container_id(pod)),
                cgroup=f"0::/kubepods/burstable/pod{_uid(pod)}/{_container_id(pod)}",
                command="python3",
                user=0,
            )
            for pod in range(number)
        }

    def holders(self, pids: Iterable[int], seen_at: Mapping[int, float]) -> dict[int, Holder]:
        return {pid: self._holders[pid] for pid in pids}

    def mps(self, holders: Iterable[Holder]) -> dict[int, str | None]:
        return {}

    def fault(self) -> Fault | None:
        return None


def _uid(pod: int) -> str:
    return str(uuid5(NAMESPACE_OID, f"pod {pod}"))


def _container_id(pod: int) -> str:
    return uuid5(NAMESPACE_OID, f"container {pod}").hex * 2


def _namespace(number: int) -> str:
    return f"team-{number % 7}"


def _pod(number: int) -> Pod:
    container = PodContainer(name="main", container_id=_container_id(number), running=True)
    return Pod(
        namespace=_namespace(number),
        name=f"pod-{number}",
        uid=_uid(number),
        phase="Running",
        containers=(container,),
        labels={"team": _namespace(number)},
    )
