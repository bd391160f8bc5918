"""On a node on which nothing changed no sharing system is asked again; after any change that matters all are."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from podgpu import sharing
from podgpu.agent.attribution import Attribution
from podgpu.model import Device, Fault, Gpu, Instance, MigInstance, Process, Reading
from tests.agent.test_attribution import OTHER, Kubelet, Pods, pod

COUNTING = '''
"""Counts how often it is asked."""

from podgpu.sharing.system import SharingSystem

ASKED = []


def explains(allocation, inventory):
    return False


def claims(inventory):
    ASKED.append(inventory)
    return ()


SYSTEM = SharingSystem(name="counting", signs=(), needs="nothing", explains=explains, claims=claims)
'''


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """How often a throw-away sharing system was asked for claims."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "counting.py").write_text(COUNTING)
    monkeypatch.setattr(sharing, "__path__", [*sharing.__path__, str(folder)])
    assert "counting" in {system.name for system in sharing.systems()}
    module = sys.modules["podgpu.sharing.counting"]
    yield lambda: len(module.ASKED)
    sys.modules.pop("podgpu.sharing.counting", None)
    vars(sharing).pop("counting", None)


class Stage:
    """A card in MIG mode that changes as a test wants it to, and whoever tells of its pods."""

    def __init__(self) -> None:
        self.pods = Pods("pods-api", pod())
        self.kubelet = Kubelet(chat="GPU-1")
        self.attribution = Attribution(interval=5.0, allocations=self.kubelet, pod_sources=[self.pods])
        self.at = 0.0
        mig = MigInstance(uuid="MIG-1", gpu_instance_id=7, compute_instance_id=0)
        self.device = Device(
            gpu=Gpu(uuid="GPU-1", index=0),
            readings=(Reading("memory_total_bytes", 100.0), Reading("compute_mode", 0.0)),
            instances=(Instance(mig=mig),),
            processes=(Process(pid=1, kinds=("compute",)),),
        )

    async def cycle(self) -> None:
        """What moves all the time moves: time, use and memory of processes."""
        self.at += 5.0
        moving = (Reading("power_watts", self.at), Reading("memory_used_bytes", self.at))
        processes = tuple(replace(process, memory_bytes=int(self.at)) for process in self.device.processes)
        device = replace(self.device, at=self.at, processes=processes, readings=(*self.device.readings, *moving))
        await self.attribution.attribute((device,), self.at)


def with_reading(device: Device, name: str, value: float) -> Device:
    others = tuple(reading for reading in device.readings if reading.metric != name)
    return replace(device, readings=(*others, Reading(name, value)))


def second_instance(device: Device) -> Device:
    mig = MigInstance(uuid="MIG-2", gpu_instance_id=8, compute_instance_id=0)
    return replace(device, instances=(*device.instances, Instance(mig=mig)))


def listed(stage: Stage) -> None:
    stage.pods.listed = (pod(), pod(OTHER, "batch", "b"))


def labelled(stage: Stage) -> None:
    stage.pods.listed = (replace(pod(), annotations={"note": "new"}),)


def given(stage: Stage) -> None:
    stage.kubelet.given = {"chat": "GPU-1", "batch": "GPU-1"}


def instance(stage: Stage) -> None:
    stage.device = second_instance(stage.device)


def memory(stage: Stage) -> None:
    stage.device = with_reading(stage.device, "memory_total_bytes", 99.0)


def mode(stage: Stage) -> None:
    stage.device = with_reading(stage.device, "compute_mode", 3.0)


def client(stage: Stage) -> None:
    stage.device = replace(stage.device, processes=(Process(pid=1, kinds=("compute", "mps")),))


def silence(stage: Stage) -> None:
    stage.device = replace(stage.device, fault=Fault(reason="lost"))


CHANGES = (listed, labelled, given, instance, memory, mode, client, silence)


async def test_while_nothing_changes_nobody_is_asked_again(asked: Callable[[], int]) -> None:
    stage = Stage()
    await stage.cycle()
    first = asked()
    for _ in range(5):
        await stage.cycle()
    assert first > 0
    assert asked() == first
    await stage.attribution.close()


@pytest.mark.parametrize("change", CHANGES, ids=[change.__name__ for change in CHANGES])
async def test_after_a_change_everybody_is_asked_once(
    change: Callable[[Stage], None], asked: Callable[[], int]
) -> None:
    stage = Stage()
    await stage.cycle()
    await stage.cycle()
    before = asked()
    change(stage)
    await stage.cycle()
    assert asked() == before + 1
    await stage.cycle()
    assert asked() == before + 1
    await stage.attribution.close()
