"""The busy time of the card in each of the driver's windows, read through the fake library."""

import time
from itertools import pairwise

import pynvml
import pytest

from podgpu.sources.nvml import process
from podgpu.sources.nvml.handle import Handle, Journal
from podgpu.sources.nvml.process import Windows
from podgpu.sources.nvml.reader import GpuReader
from tests.fakenvml.fake_node import FakeFault, h200
from tests.fakenvml.stage import Stage, mig_card


def windows_of(stage: Stage, *faults: FakeFault) -> Windows:
    return Windows(Handle(stage.play(h200(0), faults=list(faults)), Journal()))


def test_every_window_comes_once(stage: Stage) -> None:
    windows = windows_of(stage)
    windows._last_stamp -= 1_000_000
    first = windows.read()
    assert len(first) == 5
    assert {one.end_ns - one.begin_ns for one in first} == {200_000_000}
    assert {one.busy_ns for one in first} == {192_000_000}  # 96 %
    assert all(one.end_ns == next_one.begin_ns for one, next_one in pairwise(first))
    again = windows.read()
    assert not {one.end_ns for one in again} & {one.end_ns for one in first}


def test_a_clock_that_was_set_back_gives_no_window_twice(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows = windows_of(stage)
    windows._last_stamp -= 1_000_000
    windows.read()
    now = time.time_ns() // 1000
    monkeypatch.setattr(process, "_now", lambda: now - 3_600_000_000)
    assert windows.read() == ()


def test_a_card_that_refuses_them_is_left_alone(stage: Stage) -> None:
    refused = FakeFault(f"return {pynvml.NVML_ERROR_NOT_SUPPORTED}", "nvmlDeviceGetSamples")
    windows = windows_of(stage, refused)
    assert windows.read() == ()
    assert windows.read() == ()


def test_they_are_read_only_if_somebody_asks(stage: Stage) -> None:
    card = h200(0)
    reader = GpuReader(stage.play(card), card.uuid, 0, Journal())
    assert reader.read().windows == ()
    reader._windows._last_stamp -= 1_000_000
    assert reader.read(windows=True).windows


def test_those_that_nobody_asked_for_in_time_are_left_out(stage: Stage) -> None:
    card = h200(0)
    reader = GpuReader(stage.play(card), card.uuid, 0, Journal())
    reader._windows._last_stamp -= 1_000_000
    assert reader.read().windows == ()
    assert len(reader.read(windows=True).windows) <= 1


def test_a_card_in_instances_has_none(stage: Stage) -> None:
    card = mig_card()
    reader = GpuReader(stage.play(card), card.uuid, 0, Journal())
    assert reader.read(windows=True).windows == ()
