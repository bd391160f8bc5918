"""XIDs are heard, or the report says why not: a card whose events nobody hears has no count of 0."""

import time
from collections.abc import Callable

import pynvml
import pytest

from podgpu.model import Device, Refused, Report
from podgpu.sources.nvml import ReadRequest, child, session
from podgpu.sources.nvml.child import Sampler
from tests.fakenvml.fake_node import FakeFault, FakeNode, h200
from tests.fakenvml.stage import Stage
from tests.patience import PATIENCE

DENIED = f"return {pynvml.NVML_ERROR_NO_PERMISSION}"


@pytest.fixture(autouse=True)
def lists_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "ENUMERATE_SECONDS", 0.0)
    monkeypatch.setattr(session, "WAIT_MILLISECONDS", 10)
    monkeypatch.setattr(session, "PAUSE_SECONDS", 0.01)


def sampler_of(stage: Stage, *faults: FakeFault) -> Sampler:
    stage.load(FakeNode([h200(0), h200(1)], faults=list(faults)))
    return Sampler(None)


def change(stage: Stage, *faults: FakeFault) -> None:
    stage.node.faults = list(faults)
    stage.rewrite()


def read(sampler: Sampler) -> Report:
    return sampler.report(ReadRequest(PATIENCE))


def until(sampler: Sampler, is_so: Callable[[tuple[Device, ...]], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so(read(sampler).devices):
        assert time.monotonic() < deadline


def hearing(devices: tuple[Device, ...]) -> list[bool]:
    return [device.ability.hears_xids for device in devices]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("nvmlDeviceGetSupportedEventTypes", "SupportedEventTypes"),
        ("nvmlDeviceRegisterEvents", "RegisterEvents"),
    ],
)
def test_a_card_that_cannot_be_registered_is_not_heard_until_it_can(stage: Stage, call: str, name: str) -> None:
    sampler = sampler_of(stage, FakeFault(DENIED, call, device=1))
    heard, unheard = read(sampler).devices
    assert (heard.ability.hears_xids, unheard.ability.hears_xids) == (True, False)
    assert (heard.refused, unheard.refused) == ((), (Refused(call=name, reason="no_permission"),))
    change(stage)
    devices = read(sampler).devices
    assert hearing(devices) == [True, True]
    assert [device.refused for device in devices] == [(), ()]


def test_without_a_set_of_events_no_card_is_heard(stage: Stage) -> None:
    sampler = sampler_of(stage, FakeFault(DENIED, "nvmlEventSetCreate"))
    devices = read(sampler).devices
    assert hearing(devices) == [False, False]
    assert {device.refused for device in devices} == {(Refused(call="EventSetCreate", reason="no_permission"),)}


def test_a_card_that_raises_no_xids_is_not_heard(stage: Stage) -> None:
    card = h200(0)
    card.values["event_types"] = 1
    stage.load(FakeNode([card]))
    (device,) = read(Sampler(None)).devices
    assert not device.ability.hears_xids
    assert device.refused == (Refused(call="SupportedEventTypes", reason="not_supported"),)


def test_while_no_wait_for_events_succeeds_no_card_is_heard(stage: Stage) -> None:
    sampler = sampler_of(stage)
    assert hearing(read(sampler).devices) == [True, True]
    change(stage, FakeFault(f"return {pynvml.NVML_ERROR_UNKNOWN}", "nvmlEventSetWait_v2"))
    until(sampler, lambda devices: hearing(devices) == [False, False])
    why = read(sampler).devices[0].refused
    assert why == (Refused(call="EventSetWait_v2", reason="unknown_error"),)
    change(stage)
    until(sampler, lambda devices: hearing(devices) == [True, True])


def test_one_wait_that_fails_costs_nothing(stage: Stage) -> None:
    sampler = sampler_of(stage)
    read(sampler)
    failing = f"return {pynvml.NVML_ERROR_UNKNOWN}"
    change(stage, FakeFault(failing, "nvmlEventSetWait_v2", times=session.FAILED_AFTER - 1))
    waited = stage.calls("nvmlEventSetWait_v2")
    seen = [hearing(read(sampler).devices)]
    while stage.calls("nvmlEventSetWait_v2") < waited + 2 * session.FAILED_AFTER:
        seen.append(hearing(read(sampler).devices))
    assert all(heard == [True, True] for heard in seen)
