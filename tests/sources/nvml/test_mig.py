"""The instances of a card, read through the fake library, with their first memory slice if the driver reports it."""

import time

import pynvml
import pytest

from podgpu.model import Device
from podgpu.sources.nvml import gpm
from podgpu.sources.nvml.handle import CallTracker
from podgpu.sources.nvml.reader import GpuReader
from tests.fakenvml.fake_node import UNKNOWN, FakeFault, FakeGpu, FakeMig
from tests.fakenvml.stage import Stage, mig_card

CALLS = ["nvmlDeviceGetGpuInstanceById", "nvmlGpuInstanceGetInfo"]


def card_of(stage: Stage, gpu: FakeGpu, *faults: FakeFault) -> tuple[GpuReader, CallTracker]:
    tracker = CallTracker()
    return GpuReader(stage.play(gpu, faults=list(faults)), gpu.uuid, 0, tracker), tracker


def starts(device: Device) -> dict[str, int | None]:
    return {instance.mig.uuid: instance.mig.start for instance in device.instances}


def test_an_instance_says_on_which_memory_slice_it_begins(stage: Stage) -> None:
    card, _ = card_of(stage, mig_card())
    assert starts(card.read()) == {"MIG-a": 6, "MIG-b": 2}


def test_compute_instances_begin_where_their_gpu_instance_does(stage: Stage) -> None:
    gpu = mig_card()
    gpu.migs.append(FakeMig("MIG-c", 3, 9, 1, profile="1c.2g.35gb"))
    card, _ = card_of(stage, gpu)
    assert starts(card.read()) == {"MIG-a": 6, "MIG-b": 2, "MIG-c": 2}


def test_a_new_cut_is_asked_again(stage: Stage) -> None:
    gpu = mig_card()
    card, _ = card_of(stage, gpu)
    card.read()
    gpu.migs = [FakeMig("MIG-d", 0, 7, values={"placement": 0})]
    stage.rewrite()
    assert starts(card.read()) == {"MIG-d": 0}


@pytest.mark.parametrize("call", CALLS)
def test_who_may_not_ask_has_instances_without_their_place(stage: Stage, call: str) -> None:
    refusal = FakeFault(f"return {pynvml.NVML_ERROR_NO_PERMISSION}", call)
    card, tracker = card_of(stage, mig_card(), refusal)
    device = card.read()
    assert starts(device) == {"MIG-a": None, "MIG-b": None}
    assert device.fault is None
    assert tracker.errors["no_permission"] == 0


@pytest.mark.parametrize("call", CALLS)
def test_a_failure_costs_the_place_and_is_counted(stage: Stage, call: str) -> None:
    failure = FakeFault(f"return {pynvml.NVML_ERROR_UNKNOWN}", call, times=1)
    card, tracker = card_of(stage, mig_card(), failure)
    assert starts(card.read()) == {"MIG-a": None, "MIG-b": 2}
    assert tracker.errors["unknown_error"] == 1


def test_a_place_that_is_no_figure_is_not_known(stage: Stage) -> None:
    gpu = mig_card()
    gpu.migs[0].values["placement"] = UNKNOWN
    card, _ = card_of(stage, gpu)
    assert starts(card.read())["MIG-a"] is None


ALLOC, FREE = "nvmlGpmSampleAlloc", "nvmlGpmSampleFree"


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_UNKNOWN, pynvml.NVML_ERROR_NO_PERMISSION])
@pytest.mark.parametrize("call", ["nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId"])
def test_an_instance_that_does_not_say_which_one_it_is_costs_the_others_nothing(
    stage: Stage, call: str, code: int
) -> None:
    """The samples of the profiler stay, so a reading of the others is one since the reading before."""
    card, _ = card_of(stage, mig_card(), FakeFault(f"return {code}", call, device="0:2"))
    card.read()
    allocated = stage.calls(ALLOC)
    for _ in range(3):
        device = card.read()
        assert [instance.mig.uuid for instance in device.instances] == ["MIG-a"]
        assert device.instances[0].readings
        assert not device.ability.sees_all
    assert (stage.calls(ALLOC), stage.calls(FREE)) == (allocated, 0)


def test_an_instance_that_says_it_later_comes_back_beside_the_others(stage: Stage) -> None:
    fault = FakeFault(f"return {pynvml.NVML_ERROR_UNKNOWN}", "nvmlDeviceGetGpuInstanceId", device="0:0")
    card, _ = card_of(stage, mig_card(), fault)
    assert [instance.mig.uuid for instance in card.read().instances] == ["MIG-b"]
    stage.node.faults = []
    stage.rewrite()
    device = card.read()
    assert [instance.mig.uuid for instance in device.instances] == ["MIG-a", "MIG-b"]
    assert all(instance.readings for instance in device.instances)
    assert device.ability.sees_all
    assert stage.calls(FREE) == 0


def test_an_instance_without_a_uuid_may_have_processes_that_nobody_sees(stage: Stage) -> None:
    fault = FakeFault(f"return {pynvml.NVML_ERROR_UNKNOWN}", "nvmlDeviceGetUUID", device="0:2")
    device = card_of(stage, mig_card(), fault)[0].read()
    assert [instance.mig.uuid for instance in device.instances] == ["MIG-a"]
    assert not device.ability.sees_all


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_UNKNOWN, pynvml.NVML_ERROR_NO_PERMISSION])
@pytest.mark.parametrize("call", ["nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex"])
def test_a_list_of_instances_that_cannot_be_read_does_not_mean_that_there_are_no_processes(
    stage: Stage, call: str, code: int
) -> None:
    card, _ = card_of(stage, mig_card(), FakeFault(f"return {code}", call))
    for _ in range(2):
        device = card.read()
        assert device.fault is None
        assert device.instances == ()
        assert not device.ability.sees_all
        assert "processes" not in {reading.metric for reading in device.readings}
    stage.node.faults = []
    stage.rewrite()


def test_an_instance_that_could_not_be_profiled_at_first_is_tried_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = FakeFault(f"return {pynvml.NVML_ERROR_UNKNOWN}", "nvmlGpmMigSampleGet", times=1)
    card, _ = card_of(stage, mig_card(), failure)

    def profiled(device: Device) -> list[str]:
        return [
            instance.mig.uuid
            for instance in device.instances
            if "sm_active_ratio" in {reading.metric for reading in instance.readings}
        ]

    card.read()
    assert profiled(card.read()) == ["MIG-b"]
    now = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: now() + gpm.RETRY_SECONDS)
    assert profiled(card.read()) == ["MIG-a", "MIG-b"]
