"""Answers of the driver that make no sense cost one value, not the others."""

import pytest
from msgspec.structs import replace

from podgpu.agent.counters import Counters
from podgpu.model import Device, Gpu, Reading
from podgpu.sources.nvml.handle import CallTracker
from podgpu.sources.nvml.process import MOST_PROCESSES
from podgpu.sources.nvml.session import EventListener, Session
from tests.fakenvml.fake_node import FakeFault, FakeProcess, h200
from tests.fakenvml.stage import Stage, mig_card
from tests.sources.nvml.test_reader import card_of, values

GARBLED = "GPU-\udcff\udcfe"


def test_a_uuid_that_is_no_text_costs_its_own_card_alone(stage: Stage) -> None:
    odd = h200(1)
    odd.uuid = GARBLED
    stage.play(h200(0), odd)
    tracker = CallTracker()
    gpus = Session(None, tracker, EventListener()).refresh()
    assert [(gpu.uuid != "", gpu.reason) for gpu in gpus] == [(True, ""), (False, "not_text")]
    assert tracker.errors["not_text"] == 1


def test_a_version_that_is_no_text_costs_nothing_else(stage: Stage) -> None:
    stage.play(h200(0), driver="580.\udcff")
    session = Session(None, CallTracker(), EventListener())
    assert [gpu.reason for gpu in session.refresh()] == [""]
    assert session.driver_version == ""


def test_more_instances_than_a_card_can_have_are_none(stage: Stage) -> None:
    card = card_of(stage, mig_card(), FakeFault("sentinel", "nvmlDeviceGetMaxMigDeviceCount"))
    device = card.read()
    assert device.fault is None
    assert device.instances == ()
    assert card._handle.tracker.errors["implausible_value"] >= 1


def test_a_negative_activity_is_absent_and_takes_nothing_from_a_counter(stage: Stage) -> None:
    gpu = h200(0)
    card = card_of(stage, gpu)
    card.read()
    sums = {reading.metric: reading.value for reading in card.read().readings if reading.metric.endswith("_total")}
    gpu.gpm = dict.fromkeys(gpu.gpm, -50.0)
    stage.rewrite()
    device = card.read()
    assert values(device, "sm_active_ratio") == []
    assert all(
        reading.value >= sums.get(reading.metric, 0.0)
        for reading in device.readings
        if reading.metric.endswith("_total")
    )


def energy(at: float, joules: float) -> Device:
    readings = (Reading("energy_joules_total", joules), Reading("power_limit_watts", 700.0))
    return Device(gpu=Gpu(uuid="GPU-1", index=0), at=at, readings=readings)


def shown(counters: Counters, at: float, joules: float) -> list[float]:
    return values(counters.apply(energy(at, joules)), "energy_joules_total")


def test_an_energy_that_no_card_draws_is_absent_once() -> None:
    counters = Counters()
    assert shown(counters, 0.0, 1000.0) == [1000.0]
    assert shown(counters, 1.0, 1e12) == []
    assert shown(counters, 2.0, 2400.0) == [2400.0]


def test_an_energy_counter_that_was_set_anew_goes_on_from_where_it_was() -> None:
    counters = Counters()
    shown(counters, 0.0, 1000.0)
    assert [shown(counters, at, 1e12 + 500 * at) for at in (1.0, 2.0, 3.0, 4.0)] == [
        [],
        [],
        [1000.0],
        [1500.0],
    ]


@pytest.mark.parametrize("limit", [True, False])
def test_a_card_that_draws_what_it_may_is_shown(limit: bool) -> None:
    counters = Counters()
    for second in range(5):
        device = energy(float(second), 1000.0 + 700.0 * second)
        if not limit:
            device = replace(device, readings=device.readings[:1])
        assert values(counters.apply(device), "energy_joules_total") == [1000.0 + 700.0 * second]


def test_of_more_processes_than_a_card_has_room_for_the_largest_are_read_and_it_is_said(stage: Stage) -> None:
    gpu = h200(0)
    gpu.processes = [FakeProcess(1000 + number, memory=1 << 20) for number in range(MOST_PROCESSES + 500)]
    gpu.processes.append(FakeProcess(900_000, memory=1 << 30))
    card = card_of(stage, gpu)
    device = card.read()
    running = [process for process in device.processes if process.kinds]
    assert len(running) == MOST_PROCESSES
    assert 900_000 in {process.pid for process in running}
    assert not device.ability.sees_all  # nobody is called idle for it
    assert card._handle.tracker.errors["too_many_processes"] == 1
