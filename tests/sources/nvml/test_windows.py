"""The busy time of the card in each of the driver's windows, read through the fake library."""

import time
from itertools import pairwise
from types import SimpleNamespace

import pynvml
import pytest

from podgpu.model import BusyWindow
from podgpu.sources.nvml import node_clock
from podgpu.sources.nvml.handle import CallTracker, Handle
from podgpu.sources.nvml.process import DriverWindows
from podgpu.sources.nvml.reader import GpuReader
from tests.fakenvml.fake_node import FakeFault, h200
from tests.fakenvml.stage import Stage, mig_card
from tests.patience import wait_until


def windows_of(stage: Stage, *faults: FakeFault) -> DriverWindows:
    return DriverWindows(Handle(stage.play(h200(0), faults=list(faults)), CallTracker()))


def test_every_window_comes_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = stage.play(h200(0))
    clock = PlayedClock(monkeypatch)  # or a sixth window might end before they are read
    windows = DriverWindows(Handle(raw, CallTracker()))
    windows._last_stamp -= 1_000_000
    first = windows.read()
    assert len(first) == 5
    assert {window.end_ns - window.begin_ns for window in first} == {200_000_000}
    assert {window.busy_ns for window in first} == {192_000_000}  # 96 %
    assert all(window.end_ns == next_one.begin_ns for window, next_one in pairwise(first))
    assert windows.read() == ()
    clock.now += 200_000
    wait_until(lambda: time.time_ns() // 1000 > clock.now)
    (again,) = windows.read()
    assert again.begin_ns == first[-1].end_ns


def test_a_clock_that_was_set_back_gives_no_window_twice(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = windows_of(stage)
    windows._last_stamp -= 1_000_000
    windows.read()
    now = time.time_ns() // 1000
    monkeypatch.setattr(node_clock, "now", lambda: now - 3_600_000_000)
    assert windows.read() == ()


SECOND = 1_000_000


class PlayedClock:
    """A node's clock that can be set, and one that cannot, both in microseconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = time.time_ns() // 1000
        self.set_by = 0
        monkeypatch.setattr(node_clock, "now", lambda: self.now + self.set_by)
        monkeypatch.setattr(time, "monotonic_ns", lambda: 1000 * self.now)
        monkeypatch.setattr(time, "monotonic", lambda: self.now / SECOND)


class Samples:
    """The driver's buffer: a window each 200 ms for 14 s, stamped by the clock of then, in any order."""

    def __init__(self, clock: PlayedClock, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = clock
        self._kept: list[tuple[int, int, int]] = []  # when, its stamp, how busy
        monkeypatch.setattr(pynvml, "nvmlDeviceGetSamples", self._asked)

    def run(self, seconds: float, busy: int) -> None:
        for _ in range(round(5 * seconds)):
            self.clock.now += 200_000
            self._kept.append((self.clock.now, self.clock.now + self.clock.set_by, busy))
        self._kept = [sample for sample in self._kept if sample[0] > self.clock.now - 14 * SECOND]

    def _asked(self, _raw: object, _kind: int, last: int) -> tuple[int, list[SimpleNamespace]]:
        found = sorted((stamp, busy) for _, stamp, busy in self._kept if stamp > last)
        return 1, [SimpleNamespace(timeStamp=stamp, sampleValue=SimpleNamespace(uiVal=busy)) for stamp, busy in found]


@pytest.mark.parametrize("back", [1, 3, 10, 3600])
@pytest.mark.parametrize("interval", [1, 5])
def test_windows_of_before_the_clock_was_set_back_are_never_taken_for_new_ones(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, back: int, interval: int
) -> None:
    raw = stage.play(h200(0))
    clock = PlayedClock(monkeypatch)
    samples = Samples(clock, monkeypatch)
    windows = DriverWindows(Handle(raw, CallTracker()))
    for _ in range(6):
        samples.run(interval, busy=90)
        assert len(windows.read()) == 5 * interval
    samples.run(interval / 2, busy=90)
    clock.set_by = -back * SECOND
    found: list[BusyWindow] = []
    for _ in range(30 // interval):
        samples.run(interval, busy=10)
        found += windows.read()
    assert {window.busy_ns for window in found} == {20_000_000}
    assert len({window.end_ns for window in found}) == len(found) >= 5 * (30 - 15 - interval)


def test_a_clock_that_is_set_forward_costs_no_window(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = stage.play(h200(0))
    clock = PlayedClock(monkeypatch)
    samples = Samples(clock, monkeypatch)
    windows = DriverWindows(Handle(raw, CallTracker()))
    clock.set_by = 3600 * SECOND
    samples.run(1, busy=50)
    assert len(windows.read()) == 5


def test_a_card_that_refuses_them_is_left_alone(stage: Stage) -> None:
    refused = FakeFault(f"return {pynvml.NVML_ERROR_NOT_SUPPORTED}", "nvmlDeviceGetSamples")
    windows = windows_of(stage, refused)
    assert windows.read() == ()
    assert windows.read() == ()


def test_they_are_read_only_if_somebody_asks(stage: Stage) -> None:
    card = h200(0)
    reader = GpuReader(stage.play(card), card.uuid, 0, CallTracker())
    assert reader.read().windows == ()
    reader._windows._last_stamp -= 1_000_000
    assert reader.read(windows=True).windows


def test_those_that_nobody_asked_for_in_time_are_left_out(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    card = h200(0)
    raw = stage.play(card)
    samples = Samples(PlayedClock(monkeypatch), monkeypatch)
    reader = GpuReader(raw, card.uuid, 0, CallTracker())
    samples.run(1, busy=50)
    assert reader.read().windows == ()
    samples.run(0.4, busy=50)
    assert len(reader.read(windows=True).windows) == 2


def test_a_card_in_instances_has_none(stage: Stage) -> None:
    card = mig_card()
    reader = GpuReader(stage.play(card), card.uuid, 0, CallTracker())
    assert reader.read(windows=True).windows == ()
