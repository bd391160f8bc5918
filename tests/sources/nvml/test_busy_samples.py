"""Ten busy samples a second of a card: which calls that takes, read through the fake library."""

import asyncio
import threading
import time
from pathlib import Path

import pynvml
import pytest

from podgpu.sources.nvml import ReadRequest, child, source
from podgpu.sources.nvml.child import Sampler
from podgpu.sources.nvml.gpm import MOST_BUSY_SAMPLES, BusySampler
from podgpu.sources.nvml.handle import CallTracker, Handle
from podgpu.sources.nvml.source import NvmlSource
from podgpu.sources.nvml.window_split import TENTH
from tests.fakenvml.fake_node import FakeFault, FakeGpu, FakeNode, environment, h200
from tests.fakenvml.stage import Stage, mig_card
from tests.patience import PATIENCE, wait_until

SAMPLE, METRICS = "nvmlGpmSampleGet", "nvmlGpmMetricsGet"
CARDS = (h200(0).uuid, h200(1).uuid)
BUSY_SAMPLE_SECONDS = child.BUSY_SAMPLE_SECONDS
LOST = f"return {pynvml.NVML_ERROR_GPU_IS_LOST}"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A card gets half of this to answer in, so that none is skipped because the machine is busy."""
    monkeypatch.setattr(child, "BUSY_SAMPLE_SECONDS", 2 * PATIENCE)


def resting(index: int) -> FakeGpu:
    """A card that works and rests within each of the driver's windows."""
    card = h200(index)
    card.values["utilization_gpu"] = 60
    card.gpm[pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL] = 60.0
    return card


def sampler_of(stage: Stage, *watched: str, node: FakeNode | None = None) -> Sampler:
    stage.load(node or FakeNode([resting(0), resting(1)]))
    sampler = Sampler(None)
    sampler.report(ReadRequest(60.0, windows=CARDS, sampled=watched))
    return sampler


def test_a_busy_sample_takes_two_calls_and_only_for_a_card_that_is_watched(stage: Stage) -> None:
    sampler = sampler_of(stage, h200(1).uuid)
    sampler.sample_busy()  # the first has nothing to compare with
    samples, metrics = stage.calls(SAMPLE), stage.calls(METRICS)
    for _ in range(5):
        sampler.sample_busy()
    assert stage.calls(SAMPLE) - samples == 5
    assert stage.calls(METRICS) - metrics == 5
    assert not sampler.is_finished


@pytest.mark.parametrize("busy", [0, 3, 97, 100])
def test_a_card_that_works_or_rests_all_the_time_is_not_sampled(stage: Stage, busy: int) -> None:
    """It has no windows to split. Once it has, it is sampled again."""
    card = resting(0)
    card.values["utilization_gpu"] = busy
    sampler = sampler_of(stage, card.uuid, node=FakeNode([card]))
    request = ReadRequest(60.0, windows=CARDS, sampled=(card.uuid,))

    def read_a_window() -> None:
        while not sampler.report(request).devices[0].windows:
            time.sleep(0.05)

    read_a_window()
    samples = stage.calls(SAMPLE)
    sampler.sample_busy()
    assert sampler.seconds_to_sample is None
    assert stage.calls(SAMPLE) == samples
    card.values["utilization_gpu"] = 60
    stage.rewrite()
    read_a_window()
    samples = stage.calls(SAMPLE)
    sampler.sample_busy()
    assert stage.calls(SAMPLE) == samples + 1


def test_no_busy_samples_are_taken_where_no_card_is_watched(stage: Stage) -> None:
    sampler = sampler_of(stage)
    assert sampler.seconds_to_sample is None
    samples = stage.calls(SAMPLE)
    sampler.sample_busy()
    assert stage.calls(SAMPLE) == samples


def test_busy_samples_come_ten_times_a_second_and_are_not_made_up_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "BUSY_SAMPLE_SECONDS", BUSY_SAMPLE_SECONDS)
    sampler = sampler_of(stage, h200(0).uuid)
    now = time.monotonic() + 5  # the agent was away
    monkeypatch.setattr(time, "monotonic", lambda: now)
    assert sampler.seconds_to_sample == 0
    sampler._sample_due = 0.0
    due = []
    for _ in range(3):
        sampler.sample_busy()
        due.append(round((sampler.seconds_to_sample or 0) + now, 3))
        now += 0.11  # each time a little late
    assert due == [round(due[0] + step, 3) for step in (0, 0.1, 0.2)]
    assert BUSY_SAMPLE_SECONDS == 0.1


def test_the_counters_of_the_page_are_the_same_with_and_without_busy_samples(stage: Stage) -> None:
    sampler = sampler_of(stage, h200(0).uuid)
    for _ in range(3):
        sampler.sample_busy()
    watched, other = sampler.report(ReadRequest(60.0, windows=CARDS, sampled=(h200(0).uuid,))).devices
    profiled = [
        {reading.metric: reading.value for reading in device.readings if reading.metric.endswith("_active_ratio")}
        for device in (watched, other)
    ]
    assert profiled[0] == profiled[1]
    assert len(profiled[0]) > 3


def test_a_card_that_is_lost_during_a_busy_sample_is_reported_by_the_next_reading(stage: Stage) -> None:
    sampler = sampler_of(stage, h200(0).uuid)
    sampler.sample_busy()
    stage.node.faults.append(FakeFault(LOST, device=0))
    stage.rewrite()
    sampler.sample_busy()
    assert not sampler.is_finished
    lost, other = sampler.report(ReadRequest(60.0, windows=CARDS, sampled=(h200(0).uuid,))).devices
    assert lost.fault
    assert lost.fault.reason == "lost"
    assert other.fault is None


@pytest.fixture
def slow_sample(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Sampler:
    """Let a busy sample of the first card run when the next report begins."""
    sampler = sampler_of(stage, h200(0).uuid)
    sampler.sample_busy()
    stage.node.faults.append(FakeFault("hang", SAMPLE, device=0))
    stage.rewrite()
    monkeypatch.setattr(child, "BUSY_SAMPLE_SECONDS", BUSY_SAMPLE_SECONDS)
    sampler.sample_busy()
    assert sampler._slots[h200(0).uuid].worker.busy
    return sampler


def test_a_card_whose_busy_sample_runs_when_a_report_begins_does_not_hang(stage: Stage, slow_sample: Sampler) -> None:
    stage.node.faults.clear()
    ending = threading.Timer(0.1, stage.rewrite)
    ending.start()
    request = ReadRequest(60.0, windows=(h200(0).uuid,), sampled=(h200(0).uuid,))
    devices = slow_sample.report(request).devices
    ending.join()
    assert [device.fault for device in devices] == [None, None]
    assert all(device.readings for device in devices)


def test_a_busy_sample_that_does_not_return_is_named_and_a_reading_follows_it_once(
    stage: Stage, slow_sample: Sampler
) -> None:
    request = ReadRequest(1.0, windows=(h200(0).uuid,), sampled=(h200(0).uuid,))

    def is_the_other_read() -> bool:
        """Not each time where a second is short."""
        hung, other = slow_sample.report(request).devices
        assert hung.fault
        assert (hung.fault.reason, hung.fault.call) == ("hung", SAMPLE)
        assert hung.fault.seconds > 1.0  # since the sample began
        return other.fault is None

    for _ in range(2):
        wait_until(is_the_other_read)
        slow_sample.sample_busy()
    assert slow_sample._slots[h200(0).uuid].worker.tasks == 2
    stage.node.faults.clear()
    stage.rewrite()
    wait_until(lambda: not slow_sample.report(ReadRequest(2.0)).devices[0].fault)
    assert not slow_sample._slots[h200(0).uuid].worker.busy


@pytest.mark.parametrize("what", ["instances", "no profiling"])
def test_a_card_without_tenths_keeps_the_drivers_windows(stage: Stage, what: str) -> None:
    card = mig_card() if what == "instances" else h200(0)
    if what == "no profiling":
        card.values["gpm_supported"] = 0
    sampler = sampler_of(stage, card.uuid, node=FakeNode([card]))
    samples = stage.calls(SAMPLE)
    sampler.sample_busy()
    assert stage.calls(SAMPLE) == samples


def test_what_nobody_takes_does_not_pile_up(stage: Stage) -> None:
    busy_sampler = BusySampler(Handle(stage.play(h200(0)), CallTracker()))
    for _ in range(MOST_BUSY_SAMPLES + 20):
        busy_sampler.sample()
    assert len(busy_sampler.drain()) == MOST_BUSY_SAMPLES
    assert busy_sampler.drain() == []
    busy_sampler.close()


def test_a_busy_sample_is_how_busy_the_whole_card_was(stage: Stage) -> None:
    busy_sampler = BusySampler(Handle(stage.play(h200(0)), CallTracker()))
    busy_sampler.sample()
    busy_sampler.sample()
    (sample,) = busy_sampler.drain()
    assert sample.busy == pytest.approx(0.96, abs=0.02)
    assert sample.begin_ns < sample.end_ns
    busy_sampler.close()


async def test_the_windows_of_a_watched_card_are_cut_in_halves_while_it_is_watched(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole sampler, as the agent has it."""
    FakeNode([resting(0), resting(1)]).write(tmp_path / "script")
    for name, value in environment(library, tmp_path / "script").items():
        monkeypatch.setenv(name, value)
    watched = dict.fromkeys(CARDS, False) | {h200(0).uuid: True}
    monkeypatch.setattr(source, "GRACE", PATIENCE)
    sampler = NvmlSource(interval=1.0, library=None, watched=lambda: watched)
    sampler._budget = PATIENCE
    halved: dict[str, set[int]] = {}
    deadline = time.monotonic() + PATIENCE
    while TENTH not in halved.get(h200(0).uuid, ()) and time.monotonic() < deadline:
        await asyncio.sleep(0.4)
        for device in (await sampler.read()).devices:
            lengths = halved.setdefault(device.gpu.uuid, set())
            lengths.update(window.end_ns - window.begin_ns for window in device.windows)
    watched[h200(0).uuid] = False
    await sampler.read()  # what was under way
    await asyncio.sleep(0.3)
    after = (await sampler.read()).devices[0].windows
    await sampler.close()
    # They are whole as long as there is too little to judge by.
    assert {TENTH} <= halved[h200(0).uuid] <= {TENTH, 2 * TENTH}
    assert halved[h200(1).uuid] == {2 * TENTH}
    assert {window.end_ns - window.begin_ns for window in after} == {2 * TENTH}
