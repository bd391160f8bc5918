"""Measures each step of a snapshot with a thousand and with eight thousand cards, and whether the cost is linear.

Each card has a pod with a claim and two processes. The data of the kubelet, /proc and the cards is made beforehand, so
that only podgpu's own work is measured, in CPU time: the time on the clock is that of the machine's other work too.
"""

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from time import process_time

from msgspec.structs import replace

from bench.figure import Figure
from podgpu.agent.attribution import Attribution
from podgpu.cli._process import collect_seldom
from podgpu.kube.kubelet.podresources import PodResourceLists
from podgpu.model import (
    Allocation,
    Device,
    Fault,
    Gpu,
    Holder,
    Owner,
    PartStatus,
    Pod,
    PodContainer,
    Process,
    Reading,
    Snapshot,
)
from podgpu.views.exposition import Format, render
from podgpu.views.json import encode
from podgpu.views.native import families
from podgpu.views.page import html

FEW, MANY = 1000, 8000
ROUNDS = 5
LINEAR = 8.5  # eight times as many cards, and a little for larger tables
LONGEST = 1.0  # seconds
GIB = 2**30
NAMES = ("attribution, nothing changed", "attribution, a pod changed", "native page", "JSON", "HTML page")


def run() -> list[Figure]:
    collect_seldom()  # as the agent does
    few, many = asyncio.run(_best((FEW, MANY)))
    rows: list[Figure] = []
    for name in NAMES:
        ratio = many[name] / few[name]
        rows += [
            Figure(f"{name}, {FEW:,} cards", f"{few[name] * 1e3:.0f} ms"),
            _of_many(name, many[name]),
            Figure(
                f"{name}, {MANY:,} / {FEW:,}",
                f"{ratio:.1f}",
                f"<= {LINEAR}",
                ok=ratio <= LINEAR,
            ),
        ]
    return rows


def _of_many(name: str, seconds: float) -> Figure:
    title, figure = f"{name}, {MANY:,} cards", f"{seconds * 1e3:.0f} ms"
    if not name.startswith("attribution"):
        return Figure(title, figure)
    return Figure(title, figure, f"<= {LONGEST * 1e3:.0f}", ok=seconds <= LONGEST)


async def _best(numbers: Iterable[int]) -> list[dict[str, float]]:
    """The best of some rounds in which both take turns: a busy moment of the machine hits both or counts for none."""
    stages = [_Stage(number) for number in numbers]
    for stage in stages:
        await stage.cycle()
    rounds = [[await _seconds(stage) for stage in stages] for _ in range(ROUNDS)]
    return [{name: min(seconds[name] for seconds in each) for name in NAMES} for each in zip(*rounds, strict=True)]


async def _seconds(stage: "_Stage") -> dict[str, float]:
    unchanged = await stage.cycle()
    stage.pods.change()
    changed = await stage.cycle()
    snapshot = stage.snapshot
    views: tuple[Callable[[], object], ...] = (
        lambda: render(families(snapshot, {}), Format.TEXT),
        lambda: encode(snapshot),
        lambda: html(snapshot, 0.0),
    )
    return dict(zip(NAMES, (unchanged, changed, *map(_timed, views)), strict=True))


def _timed(work: Callable[[], object]) -> float:
    gc.collect()  # others' garbage is not this work's
    began = process_time()
    work()
    return process_time() - began


class _Stage:
    """Cycles of a node with that many cards."""

    def __init__(self, number: int) -> None:
        self.pods = _Pods(number)
        self._devices = [_device(card) for card in range(number)]
        self._at = 0.0
        self._attribution = Attribution(
            interval=5.0,
            allocations=_Kubelet(number),
            pod_sources=[self.pods],
            processes=_Processes(number),
        )
        self.snapshot = Snapshot(node="bench", taken_at=0.0, interval_seconds=5.0, version="")

    async def cycle(self) -> float:
        self._at += 5.0
        energy = Reading("energy_joules_total", 400 * self._at)
        devices = [replace(device, at=self._at, readings=(*device.readings, energy)) for device in self._devices]
        gc.collect()
        began = process_time()
        found = await self._attribution.attribute(devices, self._at)
        seconds = process_time() - began
        self.snapshot = replace(self.snapshot, taken_at=self._at, cards=found.cards, pods=found.pods)
        assert all(len(card.tenants) == 1 and card.tenants[0].booking.processes == 2 for card in found.cards)
        return seconds


class _Kubelet:
    name = "podresources"

    def __init__(self, number: int) -> None:
        self.errors: Counter[str] = Counter()
        self._given = PodResourceLists(
            devices=tuple(
                Allocation(
                    namespace="ns",
                    pod=f"pod-{card}",
                    container="main",
                    resource="nvidia.com/gpu",
                    device_id=_uuid(card),
                )
                for card in range(number)
            )
        )

    async def read(self) -> PodResourceLists:
        return self._given

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=True, age_seconds=0.0)


class _Pods:
    name = "pods-api"

    def __init__(self, number: int) -> None:
        self.errors: Counter[str] = Counter()
        self._pods = tuple(map(_pod, range(number)))

    async def run(self) -> None:
        return

    def pods(self) -> tuple[Pod, ...]:
        return self._pods

    def change(self) -> None:
        first, *others = self._pods
        self._pods = (replace(first, labels={"turn": first.labels.get("turn", "") + "x"}), *others)

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=True, age_seconds=0.0)


class _Processes:
    name = "procfs"

    def __init__(self, number: int) -> None:
        self._holders = {
            pid: Holder(
                pid=pid,
                kind="pod",
                start_time=pid,
                owner=Owner(pod_uid=_uid(card), container_id=_container_id(card)),
                cgroup=f"0::/kubepods/burstable/pod{_uid(card)}/{_container_id(card)}",
                command="python3",
                user=0,
            )
            for card in range(number)
            for pid in _pids(card)
        }

    def holders(self, pids: Iterable[int], seen_at: Mapping[int, float]) -> dict[int, Holder]:
        return {pid: self._holders[pid] for pid in pids}

    def mps(self, holders: Iterable[Holder]) -> dict[int, str | None]:
        return {}

    def fault(self) -> Fault | None:
        return None


def _uuid(card: int) -> str:
    return f"GPU-{card:08x}-0000-4000-8000-000000000000"


def _uid(card: int) -> str:
    return f"{card:08x}-1111-4000-8000-000000000000"


def _container_id(card: int) -> str:
    return f"{card:064x}"


def _pids(card: int) -> tuple[int, int]:
    return 2 * card + 1, 2 * card + 2


def _pod(card: int) -> Pod:
    container = PodContainer(name="main", container_id=_container_id(card), running=True)
    return Pod(namespace="ns", name=f"pod-{card}", uid=_uid(card), phase="Running", containers=(container,))


def _device(card: int) -> Device:
    return Device(
        gpu=Gpu(uuid=_uuid(card), index=card, model="NVIDIA H200"),
        readings=(
            Reading("memory_used_bytes", 100 * GIB),
            Reading("memory_total_bytes", 140 * GIB),
            Reading("utilization_ratio", 0.9),
            Reading("power_watts", 600.0),
            Reading("power_limit_watts", 700.0),
            Reading("temperature_celsius", 60.0, ("gpu",)),
        ),
        processes=tuple(
            Process(pid=pid, kinds=("compute",), memory_bytes=40 * GIB, sm_busy_us=2_000_000, sm_ratio=0.4)
            for pid in _pids(card)
        ),
    )


if __name__ == "__main__":
    for row in run():
        print(f"{row.name:48} {row.value:>10}  {row.target:8} {'ok' if row.ok else 'MISSED'}")
