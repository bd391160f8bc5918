"""Ten glimpses a second of a watched card: which calls that takes, read through the fake library."""

import asyncio
import time
from pathlib import Path

import pynvml
import pytest

from podgpu.sources.nvml import child, wire
from podgpu.sources.nvml.child import Crew
from podgpu.sources.nvml.gpm.pulse import MOST_GLIMPSES, Pulse
from podgpu.sources.nvml.gpm.tenths import TENTH
from podgpu.sources.nvml.handle import Handle, Journal
from podgpu.sources.nvml.sampler import Sampler
from tests.fakenvml.fake_node import FakeFault, FakeNode, environment, h200
from tests.fakenvml.stage import Stage, mig_card

SAMPLE, METRICS = "nvmlGpmSampleGet", "nvmlGpmMetricsGet"
CARDS = (h200(0).uuid, h200(1).uuid)
LOST = f"return {pynvml.NVML_ERROR_GPU_IS_LOST}"


def crew_of(stage: Stage, *watched: str, node: FakeNode | None = None) -> Crew:
    stage.load(node or FakeNode([h200(0), h200(1)]))
    crew = Crew(None)
    crew.report(wire.Read(2.0, windows=CARDS, watched=watched))
    return crew


def test_a_beat_takes_two_calls_and_only_for_a_card_that_is_watched(stage: Stage) -> None:
    crew = crew_of(stage, h200(1).uuid)
    crew.beat()  # the first has nothing to compare with
    samples, metrics = stage.calls(SAMPLE), stage.calls(METRICS)
    for _ in range(5):
        crew.beat()
    assert stage.calls(SAMPLE) - samples == 5
    assert stage.calls(METRICS) - metrics == 5
    assert not crew.finished


def test_nobody_beats_where_no_card_is_watched(stage: Stage) -> None:
    crew = crew_of(stage)
    assert crew.seconds_to_beat is None
    samples = stage.calls(SAMPLE)
    crew.beat()
    assert stage.calls(SAMPLE) == samples


def test_beats_come_ten_times_a_second_and_are_not_made_up_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    crew = crew_of(stage, h200(0).uuid)
    now = time.monotonic() + 5  # the agent was away
    monkeypatch.setattr(time, "monotonic", lambda: now)
    assert crew.seconds_to_beat == 0
    crew._beat_due = 0.0
    due = []
    for _ in range(3):
        crew.beat()
        due.append(round((crew.seconds_to_beat or 0) + now, 3))
        now += 0.11  # each time a little late
    assert due == [round(due[0] + step, 3) for step in (0, 0.1, 0.2)]
    assert child.BEAT_SECONDS == 0.1


def test_the_counters_of_the_page_are_the_same_with_and_without_a_pulse(stage: Stage) -> None:
    crew = crew_of(stage, h200(0).uuid)
    for _ in range(3):
        crew.beat()
    watched, other = crew.report(wire.Read(2.0, windows=CARDS, watched=(h200(0).uuid,))).devices
    profiled = [
        {one.metric: one.value for one in device.readings if one.metric.endswith("_active_ratio")}
        for device in (watched, other)
    ]
    assert profiled[0] == profiled[1]
    assert len(profiled[0]) > 3


def test_a_card_that_is_lost_during_a_beat_is_reported_by_the_next_reading(stage: Stage) -> None:
    crew = crew_of(stage, h200(0).uuid)
    crew.beat()
    stage.node.faults.append(FakeFault(LOST, device=0))
    stage.rewrite()
    crew.beat()
    assert not crew.finished
    lost, other = crew.report(wire.Read(2.0, windows=CARDS, watched=(h200(0).uuid,))).devices
    assert lost.fault
    assert lost.fault.reason == "lost"
    assert other.fault is None


def slow_beat(stage: Stage, fault: str) -> Crew:
    """Let a beat of the first card run when the next report begins."""
    crew = crew_of(stage, h200(0).uuid)
    crew.beat()
    stage.node.faults.append(FakeFault(fault, SAMPLE, device=0))
    stage.rewrite()
    crew.beat()
    assert crew._seats[h200(0).uuid].worker.busy
    return crew


def test_a_card_whose_beat_runs_when_a_report_begins_does_not_hang(stage: Stage) -> None:
    crew = slow_beat(stage, "delay 300000")
    for _ in range(3):
        devices = crew.report(wire.Read(20.0, windows=(h200(0).uuid,), watched=(h200(0).uuid,))).devices
        assert [device.fault for device in devices] == [None, None]
        assert all(device.readings for device in devices)
        crew.beat()


def test_a_beat_that_does_not_return_is_named_and_a_reading_follows_it_once(stage: Stage) -> None:
    crew = slow_beat(stage, "hang")
    for _ in range(2):
        hung, other = crew.report(wire.Read(2.0, windows=(h200(0).uuid,), watched=(h200(0).uuid,))).devices
        assert hung.fault
        assert (hung.fault.reason, hung.fault.call) == ("hung", SAMPLE)
        assert other.fault is None
        crew.beat()
    assert hung.fault
    assert hung.fault.seconds > 2.0  # since the beat began
    assert crew._seats[h200(0).uuid].worker.tasks == 2
    stage.node.faults.clear()
    stage.rewrite()
    deadline = time.monotonic() + 20
    while crew.report(wire.Read(2.0)).devices[0].fault:
        assert time.monotonic() < deadline
    assert not crew._seats[h200(0).uuid].worker.busy


@pytest.mark.parametrize("what", ["instances", "no profiling"])
def test_a_card_without_tenths_keeps_the_drivers_windows(stage: Stage, what: str) -> None:
    card = mig_card() if what == "instances" else h200(0)
    if what == "no profiling":
        card.values["gpm_supported"] = 0
    crew = crew_of(stage, card.uuid, node=FakeNode([card]))
    samples = stage.calls(SAMPLE)
    crew.beat()
    assert stage.calls(SAMPLE) == samples


def test_what_nobody_takes_does_not_pile_up(stage: Stage) -> None:
    pulse = Pulse(Handle(stage.play(h200(0)), Journal()))
    for _ in range(MOST_GLIMPSES + 20):
        pulse.beat()
    assert len(pulse.taken()) == MOST_GLIMPSES
    assert pulse.taken() == []
    pulse.close()


def test_a_glimpse_is_how_busy_the_whole_card_was(stage: Stage) -> None:
    pulse = Pulse(Handle(stage.play(h200(0)), Journal()))
    pulse.beat()
    pulse.beat()
    (one,) = pulse.taken()
    assert one.busy == pytest.approx(0.96, abs=0.02)
    assert one.begin_ns < one.end_ns
    pulse.close()


async def test_the_windows_of_a_watched_card_are_cut_in_halves_while_it_is_watched(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole sampler, as the agent has it."""
    FakeNode([h200(0), h200(1)]).write(tmp_path / "script")
    for name, value in environment(library, tmp_path / "script").items():
        monkeypatch.setenv(name, value)
    watched = dict.fromkeys(CARDS, False) | {h200(0).uuid: True}
    sampler = Sampler(interval=1.0, library=None, watched=lambda: watched)
    halved: dict[str, set[int]] = {}
    deadline = time.monotonic() + 20
    while TENTH not in halved.get(h200(0).uuid, ()) and time.monotonic() < deadline:
        await asyncio.sleep(0.4)
        for device in (await sampler.read()).devices:
            lengths = halved.setdefault(device.gpu.uuid, set())
            lengths.update(one.end_ns - one.begin_ns for one in device.windows)
    watched[h200(0).uuid] = False
    await sampler.read()  # what was under way
    await asyncio.sleep(0.3)
    after = (await sampler.read()).devices[0].windows
    await sampler.close()
    assert halved[h200(0).uuid] == {TENTH, 2 * TENTH}  # whole as long as there is too little to judge by
    assert halved[h200(1).uuid] == {2 * TENTH}
    assert {one.end_ns - one.begin_ns for one in after} == {2 * TENTH}
