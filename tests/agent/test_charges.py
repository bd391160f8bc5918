"""The kernel's books of memory beside the driver's list, over some cycles. /proc and the cgroups are folders."""

import threading
from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace

from podgpu.agent.attribution import Attribution
from podgpu.agent.charges import MemoryCharges
from podgpu.host.dmem import Dmem
from podgpu.host.procfs import Procfs
from podgpu.insight import conclude
from podgpu.model import Charge, Device, Gpu, Process, Reading, Snapshot
from podgpu.views.why import why
from podgpu.views.why_evidence import evidence
from tests.agent.stage import write_proc
from tests.agent.test_attribution import GPU, INTERVAL, UID, Kubelet, Pods, cgroup, pod
from tests.tree import SETTINGS

GIB = 1 << 30
PCI = "00000000:3B:00.0"
CONTAINER = f"kubepods/pod{UID}/{'a' * 64}"


class Stage:
    def __init__(self, folder: Path) -> None:
        self._proc, self._tree, self._at = folder / "proc", folder / "cgroup", 1000.0
        (self._tree / CONTAINER).mkdir(parents=True)
        (self._tree / "dmem.capacity").write_text(self._region(80 * GIB))
        self._attribution = Attribution(
            interval=INTERVAL,
            allocations=Kubelet(chat=GPU),
            pod_sources=[Pods("pods-api", pod())],
            processes=Procfs(self._proc),
            charges=Dmem(self._tree),
        )

    def _region(self, number: int) -> str:
        return f"nvidia/0000:3b:00.0/vidmem {number}\n"

    def charge(self, number: int) -> None:
        for folder in (self._tree / CONTAINER, *list((self._tree / CONTAINER).parents)[:2]):
            (folder / "dmem.current").write_text(self._region(number))

    def runs(self, pid: int, number: int | None, *, line: str = cgroup(UID, "a")) -> Process:
        write_proc(self._proc, pid, line)
        return Process(pid=pid, kinds=("compute",), memory_bytes=number)

    async def snapshot(self, *processes: Process, is_complete: bool = True) -> Snapshot:
        self._at += INTERVAL
        device = Device(
            gpu=Gpu(uuid=GPU, index=0, pci_bus_id=PCI),
            at=self._at,
            readings=(Reading("memory_used_bytes", 40.0 * GIB),),
            processes=processes,
        )
        device = replace(device, ability=replace(device.ability, sees_all=is_complete))
        found = await self._attribution.attribute([device], self._at)
        bare = Snapshot(node="n", taken_at=self._at, interval_seconds=INTERVAL, version="1", cards=found.cards)
        return conclude(replace(bare, pods=found.pods, parts=found.parts), SETTINGS)

    async def settled(self, *processes: Process, is_complete: bool = True) -> Snapshot:
        """Read until a difference counts."""
        for _ in range(2):
            early = await self.snapshot(*processes, is_complete=is_complete)
            assert kinds(early) == []
        return await self.snapshot(*processes, is_complete=is_complete)


def kinds(snapshot: Snapshot) -> list[str]:
    assert snapshot.insight
    return [problem.kind for problem in snapshot.insight.problems if problem.kind.startswith("memory_")]


def charge_of(snapshot: Snapshot) -> Charge:
    (charge,) = snapshot.cards[0].charges or ()
    return charge


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


async def test_what_agrees_is_shown_and_no_problem(stage: Stage) -> None:
    stage.charge(12 * GIB)
    snapshot = await stage.settled(stage.runs(7, 11 * GIB + GIB // 2))
    charge = charge_of(snapshot)
    assert (charge.charged_bytes, charge.listed_bytes) == (12 * GIB, 11 * GIB + GIB // 2)
    assert charge.container.pod == "chat"
    assert kinds(snapshot) == []
    text = why(snapshot, "ns", "chat", 100) or ""
    assert "Charged    12.0 GiB by the kernel to container main," in text
    assert "whose processes have 11.5 GiB by the driver" in text
    assert "no process explains" not in text


async def test_memory_that_no_process_explains_is_named(stage: Stage) -> None:
    stage.charge(20 * GIB)
    snapshot = await stage.settled(stage.runs(7, 12 * GIB))
    assert kinds(snapshot) == ["memory_unexplained"]
    assert snapshot.insight
    (problem,) = (problem for problem in snapshot.insight.problems if problem.kind == "memory_unexplained")
    assert problem.text == "GPU 0 has 8.0 GiB that the kernel charges to ns/chat and none of its processes has."
    assert problem.pod == "ns/chat"
    assert "8.0 GiB of it no process explains" in " ".join((why(snapshot, "ns", "chat", 100) or "").split())


async def test_a_holder_without_any_process_may_leave_memory_behind(stage: Stage) -> None:
    stage.charge(20 * GIB)
    snapshot = await stage.settled()
    assert (charge_of(snapshot).listed_bytes, charge_of(snapshot).unexplained_bytes) == (0, 20 * GIB)
    assert kinds(snapshot) == ["memory_unexplained"]


async def test_memory_that_is_charged_elsewhere_is_named(stage: Stage) -> None:
    stage.charge(0)
    snapshot = await stage.settled(stage.runs(7, 12 * GIB))
    assert kinds(snapshot) == ["memory_elsewhere"]
    document = evidence(snapshot, "ns/chat") or {}
    (shown,) = document["cards"][0]["charges"]
    assert (shown["charged_bytes"], shown["listed_bytes"], shown["elsewhere_bytes"]) == (0, 12 * GIB, 12 * GIB)


@pytest.mark.parametrize("line", ["0::/kubepods/pod99999999-2222-3333-4444-555555555555/" + "b" * 64 + "\n", "0::/\n"])
async def test_a_process_that_may_be_its_own_explains_it(stage: Stage, line: str) -> None:
    """The pod of the other process is on no list; a process in the root belongs to the host, not to a pod."""
    stage.charge(20 * GIB)
    snapshot = await stage.settled(stage.runs(7, 12 * GIB), stage.runs(8, 8 * GIB, line=line))
    assert kinds(snapshot) == ([] if "pod9" in line else ["memory_unexplained"])


async def test_without_all_processes_or_all_their_memory_nothing_is_concluded(stage: Stage) -> None:
    stage.charge(20 * GIB)
    process = stage.runs(7, 2 * GIB)
    assert kinds(await stage.settled(process, is_complete=False)) == []
    assert kinds(await stage.settled(process, stage.runs(8, None))) == []


async def test_a_difference_of_a_moment_is_none(stage: Stage) -> None:
    process = stage.runs(7, 12 * GIB)
    for charged in (20, 20, 12, 20, 20):
        stage.charge(charged * GIB)
        snapshot = await stage.snapshot(process)
        assert kinds(snapshot) == []
    assert kinds(await stage.snapshot(process)) == ["memory_unexplained"]
    assert kinds(await stage.snapshot(replace(process, memory_bytes=20 * GIB))) == []


async def test_a_container_whose_cgroup_has_no_books_is_left_out(stage: Stage) -> None:
    snapshot = await stage.settled(stage.runs(7, 12 * GIB))
    assert snapshot.cards[0].charges == ()
    assert "Charged" not in (why(snapshot, "ns", "chat", 100) or "Charged")


async def test_the_books_are_read_in_a_thread_however_many_cgroups_there_are() -> None:
    read_in: list[int] = []

    class Source:
        def charged(self, lines: Iterable[str]) -> None:
            read_in.append(threading.get_ident())

    assert await MemoryCharges(Source()).compare([], {}, lambda holder: holder) == {}
    assert read_in and threading.get_ident() not in read_in
