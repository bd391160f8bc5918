"""A card, read in this process through the fake library. What it does not report is absent."""

import time
from typing import Any

import pynvml
import pytest

from podgpu.model import Device
from podgpu.sources.nvml import node_clock, plan, process, reader, utilization
from podgpu.sources.nvml.handle import CallTracker, Handle
from podgpu.sources.nvml.reader import GpuReader
from podgpu.sources.nvml.utilization import Utilization
from tests.fakenvml.fake_node import FakeFault, FakeGpu, FakeProcess, h200, refused
from tests.fakenvml.stage import Stage, mig_card

UNKNOWN_ERROR = f"return {pynvml.NVML_ERROR_UNKNOWN}"
HOUR = 3600 * 1_000_000


def card_of(stage: Stage, gpu: FakeGpu, *faults: FakeFault) -> GpuReader:
    return GpuReader(stage.play(gpu, faults=list(faults)), gpu.uuid, 0, CallTracker())


def values(device: Device, metric: str) -> list[float]:
    return [reading.value for reading in device.readings if reading.metric == metric]


def busy_card(sm: int = 30) -> FakeGpu:
    card = h200(0)
    card.processes = [FakeProcess(70, 1 << 20, sm=sm)]
    return card


def change(stage: Stage, *faults: FakeFault) -> None:
    stage.node.faults = list(faults)
    stage.rewrite()


def test_a_process_whose_use_cannot_be_read_is_not_idle(stage: Stage) -> None:
    card = card_of(stage, busy_card())
    calls = ("nvmlDeviceGetProcessesUtilizationInfo", "nvmlDeviceGetProcessUtilization")
    change(stage, *(FakeFault(UNKNOWN_ERROR, call) for call in calls))
    (process,) = card.read().processes
    assert process.sm_ratio is None
    assert process.sm_busy_us is None


def test_a_use_that_is_no_figure_is_not_full_use(stage: Stage) -> None:
    (process,) = card_of(stage, busy_card(sm=2**32 - 1)).read().processes
    assert process.sm_ratio is None


@pytest.mark.parametrize("kind", ["Compute", "Graphics"])
def test_a_list_that_cannot_be_read_counts_no_processes(stage: Stage, kind: str) -> None:
    card = card_of(stage, h200(0))
    change(stage, FakeFault(UNKNOWN_ERROR, f"nvmlDeviceGet{kind}RunningProcesses_v3"))
    assert values(card.read(), "processes") == []


def test_a_clock_set_back_hides_use_for_one_reading_only(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = Handle(stage.play(busy_card()), CallTracker())
    right = node_clock.now
    with monkeypatch.context() as ahead:
        ahead.setattr(node_clock, "now", lambda: right() + HOUR)
        use = Utilization(handle)
    listed = process.running(handle, None).processes
    assert [process.sm_ratio for process in use.apply(listed)] == [None]
    monkeypatch.setattr(node_clock, "now", lambda: right() + 1_000_000)
    assert [process.sm_ratio for process in use.apply(listed)] != [None]


def test_a_clock_set_back_between_two_readings_hides_use_although_time_went_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Set back by three of five seconds, it seems that two have passed."""
    handle = Handle(stage.play(busy_card()), CallTracker())
    use, listed = Utilization(handle), process.running(handle, None).processes
    right, second = node_clock.now, 1_000_000
    began = time.monotonic_ns()
    monkeypatch.setattr(time, "monotonic_ns", lambda: began + 5_000 * second)
    monkeypatch.setattr(node_clock, "now", lambda: right() + 2 * second)
    assert [process.sm_ratio for process in use.apply(listed)] == [None]


@pytest.fixture
def looks_at_the_mode_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MIG_MODE_SECONDS", 0.0)


@pytest.mark.usefixtures("looks_at_the_mode_each_time")
def test_what_was_refused_under_mig_is_asked_again_without(stage: Stage) -> None:
    gpu = mig_card()
    gpu.values["utilization_gpu"] = refused(pynvml.NVML_ERROR_NOT_SUPPORTED)
    card = card_of(stage, gpu)
    assert values(card.read(), "utilization_ratio") == []
    gpu.mig_enabled, gpu.migs, gpu.values["utilization_gpu"] = False, [], 50
    stage.rewrite()
    assert values(card.read(), "utilization_ratio") == [0.5]


@pytest.mark.usefixtures("looks_at_the_mode_each_time")
def test_an_unanswered_question_for_mig_changes_nothing(stage: Stage) -> None:
    card = card_of(stage, mig_card())
    assert len(card.read().instances) == 2
    change(stage, FakeFault(UNKNOWN_ERROR, "nvmlDeviceGetMigMode"))
    assert len(card.read().instances) == 2


def test_a_card_without_room_for_profiling_gives_the_rest(stage: Stage) -> None:
    device = card_of(stage, h200(0), FakeFault(UNKNOWN_ERROR, "nvmlGpmSampleAlloc")).read()
    assert device.fault is None
    assert values(device, "sm_active_ratio") == []
    assert values(device, "utilization_ratio") == [0.96]


def wrong_text(*_: Any) -> str:
    return b"\xff".decode()


def test_a_name_that_is_not_text_costs_the_name(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pynvml, "nvmlDeviceGetName", wrong_text)
    device = card_of(stage, h200(0)).read()
    assert device.fault is None
    assert device.gpu.model == ""


def test_a_mistake_is_the_cards_fault_and_names_its_place(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def mistake(*_: Any) -> None:
        raise KeyError("no such type")

    monkeypatch.setattr(pynvml, "nvmlDeviceGetPowerUsage", mistake)
    fault = card_of(stage, h200(0)).read().fault
    assert fault
    assert fault.reason == "sampler_error"
    assert fault.detail.startswith("KeyError('no such type') at test_reader.py:")


def test_brand_serial_number_and_application_clocks_are_read(stage: Stage) -> None:
    device = card_of(stage, h200(0)).read()
    assert (device.gpu.brand, device.gpu.serial) == ("NVIDIA", "1654424000000")
    assert values(device, "clock_application_hertz") == [1_980e6, 3_201e6]


def test_a_card_whose_every_call_fails_is_down_at_once(stage: Stage) -> None:
    """What it answered half a minute ago is remembered, and no sign of life."""
    card = card_of(stage, h200(0))
    assert card.read().fault is None
    change(stage, FakeFault(UNKNOWN_ERROR))
    fault = card.read().fault
    assert fault and (fault.reason, fault.detail) == ("unknown_error", "no call answered")
    change(stage)
    assert card.read().fault is None


def test_a_card_that_answers_a_single_call_is_up(stage: Stage) -> None:
    card = card_of(stage, h200(0))
    card.read()
    change(stage, FakeFault(UNKNOWN_ERROR, "nvmlDeviceGetUtilizationRates"))
    assert card.read().fault is None


ENERGY_CALL = "nvmlDeviceGetTotalEnergyConsumption"


def test_the_energy_counter_is_read_every_few_seconds_and_when_the_processes_change(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = busy_card()
    card = card_of(stage, gpu)
    first = values(card.read(), "energy_joules_total")
    read = stage.calls(ENERGY_CALL)
    assert values(card.read(), "energy_joules_total") == first != []
    assert stage.calls(ENERGY_CALL) == read, "it costs more than most other calls together"
    gpu.processes.append(FakeProcess(71, 1 << 20, sm=10))
    stage.rewrite()
    card.read()
    assert stage.calls(ENERGY_CALL) == read + 1
    now = time.monotonic() + reader.COSTLY_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: now)
    card.read()
    assert stage.calls(ENERGY_CALL) == read + 2


def test_a_brief_reading_leaves_out_what_takes_long_and_the_next_one_has_it(stage: Stage) -> None:
    card = card_of(stage, h200(0))
    first, second = ({reading.metric for reading in card.read(brief=is_brief).readings} for is_brief in (True, False))
    slow = {row.name for rows in (plan.SLOW.fields.values(), *plan.SLOW.calls.values()) for row in rows}
    assert {"power_watts", "energy_joules_total", "memory_used_bytes"} <= first
    assert second - first == (slow | {row.name for row, _ in plan.GPM_ROWS}) & second
    assert {"sm_active_ratio", "remapped_rows"} <= second - first


def test_the_use_of_processes_takes_one_call_however_many_they_are(stage: Stage) -> None:
    gpu = h200(0)
    gpu.processes = [FakeProcess(1000 + number, 1 << 20, sm=1) for number in range(3 * utilization.ROOM)]
    card = card_of(stage, gpu)
    first = card.read()
    assert [found.sm_ratio for found in first.processes] == [0.01] * 3 * utilization.ROOM
    before = stage.calls(utilization.NewerCall.name)
    card.read()
    assert stage.calls(utilization.NewerCall.name) - before == 1


def test_links_are_asked_for_once_something_went_over_any_of_them(stage: Stage) -> None:
    gpu = h200(0)
    gpu.gpm |= {61: 0.0, 63: 2.0}
    card = card_of(stage, gpu)
    link = "nvlink_link_transmit_bytes_per_second"
    card.read()
    assert values(card.read(), link) == []
    stage.node.gpus[0].gpm[61] = 2.0
    stage.rewrite()
    card.read()
    assert values(card.read(), link) == [2.0 * (1 << 20)]


def test_in_another_pid_namespace_an_empty_list_does_not_mean_that_there_are_no_processes(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There the driver lists no process, but still reports the utilization of all."""
    monkeypatch.setattr(reader, "sees_node", lambda: False)
    gpu = h200(0)
    gpu.processes = [FakeProcess(70, 1 << 20, kinds=(), sm=30)]
    device = card_of(stage, gpu).read()
    assert [process.pid for process in device.processes] == [70]
    assert values(device, "processes") == []
    assert not device.ability.sees_all


def test_a_field_of_a_type_that_the_bindings_do_not_know_costs_that_value_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(plan.FIELD_VALUE, pynvml.NVML_VALUE_TYPE_UNSIGNED_INT)
    device = card_of(stage, h200(0)).read()
    assert device.fault is None
    assert values(device, "utilization_ratio") == [0.96]


def test_errors_of_the_chips_own_memory_are_read_apart(stage: Stage) -> None:
    gpu = h200(0)
    gpu.values |= {"ecc_sram[0,0]": 1, "ecc_sram[1,0]": 2, "ecc_sram[0,1]": 3, "ecc_sram[1,1]": 4}
    found = {
        reading.labels: reading.value
        for reading in card_of(stage, gpu).read().readings
        if reading.metric == "ecc_sram_errors_total"
    }
    assert found == {
        ("corrected", "volatile"): 1,
        ("uncorrected", "volatile"): 2,
        ("corrected", "aggregate"): 3,
        ("uncorrected", "aggregate"): 4,
    }
