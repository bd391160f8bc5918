"""Over some cycles: claims follow the processes of a container where its note may mean two cards."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from podgpu import sharing
from podgpu.agent.attribution import Attributed, Attribution
from podgpu.host.procfs import Procfs
from podgpu.model import Allocation, Claim, Device, Gpu, Pod, Process
from podgpu.sharing.inventory import Inventory
from podgpu.sources.simulator.kubernetes import DemoAllocations
from tests.agent.stage import write_proc
from tests.agent.test_attribution import UID, Kubelet, Pods, cgroup, pod

ZERO, ONE = (f"GPU-00000000-0000-4000-8000-00000000000{n}" for n in range(2))
# Each names card ZERO by its note, and card ONE by its id; gpushare's number may be either.
SYSTEMS = {
    "hami": ("nvidia.com/gpu", f"{ONE}-3", {"hami.io/vgpu-devices-allocated": f"{ZERO},NVIDIA,1024,30:;"}),
    "volcano": ("volcano.sh/gpu-number", ONE, {"volcano.sh/gpu-index": "0"}),
    "gpushare": ("aliyun.com/gpu-mem", f"{ONE}-_-0", {"ALIYUN_COM_GPU_MEM_IDX": "0"}),
}


class NotedKubelet(Kubelet):
    def __init__(self, resource: str, device_id: str) -> None:
        super().__init__()
        self._row = Allocation(namespace="ns", pod="chat", container="main", resource=resource, device_id=device_id)

    async def read(self) -> DemoAllocations:
        return DemoAllocations((self._row,), ())


class Stage:
    """Two cards whose numbers in /dev are the other way round, and a pod with a note."""

    def __init__(self, folder: Path, system: str) -> None:
        resource, device_id, note = SYSTEMS[system]
        self.pods = Pods("pods-api", self._noted(note))
        self.attribution = Attribution(
            interval=5.0,
            allocations=NotedKubelet(resource, device_id),
            pod_sources=[self.pods],
            processes=Procfs(folder),
        )
        self.at = 0.0
        write_proc(folder, 7, cgroup(UID, "a"))

    @staticmethod
    def _noted(note: dict[str, str]) -> Pod:
        return replace(pod(), annotations=note)

    async def cycle(self, *, on: str = "", elsewhere: int | None = None) -> Attributed:
        """Let the pod's process run on one of the cards, or on none, and another one on those that are left."""
        self.at += 5.0
        pids = {uuid: 7 if uuid == on else elsewhere for uuid in (ZERO, ONE)}
        devices = [
            Device(
                gpu=Gpu(uuid=uuid, index=index, minor=1 - index),
                at=self.at,
                processes=() if pid is None else (Process(pid=pid, kinds=("compute",), memory_bytes=1),),
            )
            for index, (uuid, pid) in enumerate(pids.items())
        ]
        return await self.attribution.attribute(devices, self.at)


def claimed(found: Attributed) -> list[tuple[str, tuple[str, ...] | None]]:
    """List the cards that are claimed, with those that were ruled out."""
    claims = (claim for card in found.cards for tenant in card.tenants for claim in tenant.claims)
    return [(claim.gpu, claim.ruled_out) for claim in claims]


@pytest.mark.parametrize("system", ["hami", "volcano"])
async def test_a_note_that_processes_contradict_is_corrected(tmp_path: Path, system: str) -> None:
    stage = Stage(tmp_path, system)
    assert claimed(await stage.cycle()) == [(ZERO, None)]
    assert claimed(await stage.cycle(on=ZERO)) == [(ZERO, None)]
    assert claimed(await stage.cycle(on=ONE)) == [(ONE, (ZERO,))]
    assert claimed(await stage.cycle()) == [(ONE, (ZERO,))]
    await stage.attribution.close()


async def test_without_a_usual_reading_nothing_is_claimed_until_a_process_is_seen(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "gpushare")
    unseen = await stage.cycle()
    assert claimed(unseen) == []
    (status,) = unseen.sharing
    assert "not known for 1 container" in " ".join(status.doubts)
    seen = await stage.cycle(on=ONE)
    assert claimed(seen) == [(ONE, (ZERO,))]
    (status,) = seen.sharing
    assert (status.claims, status.doubts) == (1, ())
    assert claimed(await stage.cycle(on=ZERO)) == [(ZERO, (ONE,))]
    await stage.attribution.close()


async def test_another_note_is_another_question(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "gpushare")
    assert claimed(await stage.cycle(on=ONE)) == [(ONE, (ZERO,))]
    stage.pods.listed = (replace(pod(), annotations={"ALIYUN_COM_GPU_MEM_IDX": "1"}),)
    assert claimed(await stage.cycle()) == []
    await stage.attribution.close()


async def test_claims_are_made_again_only_when_a_decision_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of the host's is on every card that the pod's is not on: the cards look alike in each cycle."""
    made: list[Inventory] = []
    make = sharing.claims

    def noting(inventory: Inventory, *rest: Any) -> tuple[Claim, ...]:
        made.append(inventory)
        return make(inventory, *rest)

    monkeypatch.setattr(sharing, "claims", noting)
    stage = Stage(tmp_path, "volcano")
    write_proc(tmp_path, 8, "0::/system.slice/backup.service\n")
    counts = []
    for on in ("", "", ZERO, ZERO, ONE, ONE, "", ZERO):
        made.clear()
        await stage.cycle(on=on, elsewhere=8)
        counts.append(len(made))
    assert counts == [1, 0, 1, 0, 1, 0, 0, 1]
    await stage.attribution.close()
