"""What a card refuses: a mistake of a moment costs at most a moment, and what people miss is named."""

import pynvml
import pytest

from podgpu.model import Refused
from podgpu.sources.nvml import failure, reader
from podgpu.sources.nvml.failure import Refusals
from podgpu.sources.nvml.handle import CallTracker
from podgpu.sources.nvml.reader import GpuReader
from tests.fakenvml.fake_node import FakeFault, FakeGpu, h200, refused
from tests.fakenvml.stage import Stage
from tests.sources.nvml.test_reader import card_of, values

UNSUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED
KEY = ("nvmlDeviceGetPowerUsage", ())


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_pauses_grow_to_an_hour_and_start_over_after_an_answer() -> None:
    clock = Clock()
    refusals = Refusals(clock)
    pauses = []
    for _ in range(20):
        refusals.record_refusal(KEY, UNSUPPORTED)
        began = clock.now
        while refusals.is_paused(KEY):
            clock.now += 1.0
        pauses.append(clock.now - began)
    assert pauses[:4] == [1.0, 2.0, 4.0, 8.0]
    assert pauses[-1] == failure.LONGEST_PAUSE
    refusals.record_answer(KEY)
    assert not refusals.is_refused(KEY)
    refusals.record_refusal(KEY, UNSUPPORTED)
    clock.now += 1.0
    assert not refusals.is_paused(KEY)


def test_what_the_library_lacks_is_never_asked_again() -> None:
    clock = Clock()
    refusals = Refusals(clock)
    refusals.record_refusal(KEY, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
    clock.now += 1e9
    assert refusals.is_paused(KEY)


@pytest.fixture
def asks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(reader, "SLOW_SECONDS", 0.0)


@pytest.mark.parametrize(
    ("key", "metric", "call"),
    [("power", "power_watts", "PowerUsage"), ("utilization_gpu", "utilization_ratio", "UtilizationRates")],
)
@pytest.mark.usefixtures("asks_at_once")
def test_a_refusal_is_named_while_it_lasts(stage: Stage, key: str, metric: str, call: str) -> None:
    gpu = h200(0)
    card = card_of(stage, gpu)
    before = values(card.read(), metric)
    assert before
    answer, gpu.values[key] = gpu.values[key], refused(UNSUPPORTED)
    stage.rewrite()
    device = card.read()
    assert values(device, metric) == []
    assert device.refused == (Refused(call=call, reason="not_supported"),)
    gpu.values[key] = answer
    stage.rewrite()
    device = card.read()
    assert values(device, metric) == before
    assert device.refused == ()


CALLS = (
    "nvmlDeviceGetPowerUsage",
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetProcessesUtilizationInfo",
    "nvmlDeviceGetMinorNumber",
    "nvmlDeviceGetName",
    "nvmlGpmQueryDeviceSupport",
    "nvmlGpmSampleGet",
)


@pytest.mark.parametrize("code", [UNSUPPORTED, pynvml.NVML_ERROR_NO_PERMISSION], ids=failure.reason)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.usefixtures("asks_at_once")
def test_one_refusal_hides_nothing(stage: Stage, call: str, code: int) -> None:
    raw = stage.play(h200(0), faults=[FakeFault(f"return {code}", call, times=1)])
    card = GpuReader(raw, "GPU-0", 0, CallTracker())
    card.read()
    device = card.read()
    whole = GpuReader(raw, "GPU-0", 0, CallTracker()).read()
    assert {reading.metric for reading in device.readings} == {reading.metric for reading in whole.readings}
    assert (device.gpu.model, device.gpu.minor) == (whole.gpu.model, whole.gpu.minor)
    assert device.ability == whole.ability
    assert device.refused == ()


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.usefixtures("asks_at_once")
def test_a_refusal_from_the_start_is_named(stage: Stage, call: str) -> None:
    older = {"nvmlDeviceGetProcessesUtilizationInfo": ("nvmlDeviceGetProcessUtilization",)}
    forms = (call.replace("_v3", "_v2"), call.removesuffix("_v3")) if call.endswith("_v3") else older.get(call, ())
    faults = [FakeFault(f"return {UNSUPPORTED}", form) for form in (call, *forms)]
    device = card_of(stage, h200(0), *faults).read()
    assert [refusal.reason for refusal in device.refused] == ["not_supported"]


def test_a_field_that_is_refused_once_comes_back(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(reader, "SLOW_SECONDS", 0.0)
    gpu: FakeGpu = h200(0)
    card = card_of(stage, gpu)
    before = {(reading.metric, reading.labels) for reading in card.read().readings}
    number = next(iter(gpu.fields))
    answer, gpu.fields[number] = gpu.fields[number], refused(UNSUPPORTED)
    stage.rewrite()
    assert {(reading.metric, reading.labels) for reading in card.read().readings} < before
    gpu.fields[number] = answer
    stage.rewrite()
    assert {(reading.metric, reading.labels) for reading in card.read().readings} == before
