"""Windows of a period become columns that add up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.ledger.cycle import CycleBooks, Party, TenantKey, WindowBooking
from podgpu.ledger.lanes import MOST_COLUMNS, STEP_NS, LaneRecorder
from podgpu.model import Band, BusyWindow, ContainerRef

A, B = (TenantKey("GPU-0", "", ContainerRef("ml", pod, "main")) for pod in ("a", "b"))


def cycle(*windows: WindowBooking, switching_us: int = 0) -> CycleBooks:
    return CycleBooks(
        gpu="GPU-0",
        bookings={},
        memory_bytes=None,
        busy_us=0,
        energy_mj=0,
        switches=len(windows),
        switching_us=switching_us,
        logged_us=1000,
        windows=windows,
    )


def window(begin_ns: int, length_ns: int, resident_ns: int, booked: dict[Party, int]) -> WindowBooking:
    return WindowBooking(BusyWindow(begin_ns, begin_ns + length_ns, length_ns), resident_ns, booked)


def band(booked_us: int, elapsed_us: int) -> Band:
    return Band(
        elapsed_us=elapsed_us,
        booked_us=booked_us,
        least_us=0,
        most_us=booked_us,
        booked_mj=0,
        least_mj=0,
        most_mj=0,
    )


@given(
    lengths=st.lists(st.integers(10**7, 10**9), min_size=1, max_size=40),
    parts=st.lists(st.integers(0, 100), min_size=1),
    total=st.integers(0, 10**8),
)
def test_a_lane_adds_up_to_what_was_booked(lengths: list[int], parts: list[int], total: int) -> None:
    recorder, at = LaneRecorder(), 5
    for number, length in enumerate(lengths):
        booked = length * parts[number % len(parts)] // 100
        recorder.add(cycle(window(at, length, length, {A: booked})))
        at += length
    whole = band(total, sum(lengths) // 1000)
    lanes = recorder.lanes({A: whole, B: band(total // 2, whole.elapsed_us)}, whole, 0.0, is_whole=True)
    assert lanes is not None
    own, other = lanes.lanes
    assert len(lanes.seen_us) == min(MOST_COLUMNS, -(-sum(lengths) // STEP_NS))
    assert sum(own.busy_us) == (total if any(recorder.booked[A]) else 0)
    assert sum(other.busy_us) == total // 2, "of whom the log knows nothing, only the sum is known"


def test_the_time_between_two_contexts_is_switching() -> None:
    recorder = LaneRecorder()
    recorder.add(cycle(window(0, STEP_NS, STEP_NS // 2, {A: 10}), switching_us=100_000))
    recorder.add(cycle(window(2 * STEP_NS, STEP_NS, STEP_NS, {B: 10})))
    whole = band(20, 400_000)
    lanes = recorder.lanes({A: whole, B: whole, "overhead": band(0, 1)}, whole, 9.0, is_whole=False)
    assert lanes is not None
    assert lanes.switching_us == (100_000, 0, 0) and lanes.seen_us == (200_000, 0, 200_000)
    assert [lane.busy_us for lane in lanes.lanes] == [(20, 0, 0), (0, 0, 20)]
    assert (lanes.switches, lanes.logged_us, lanes.ended_at) == (2, 2000, 9.0)


def test_where_the_log_saw_little_of_the_time_there_are_no_lanes() -> None:
    recorder = LaneRecorder()
    recorder.add(cycle(window(0, STEP_NS, STEP_NS, {A: 10})))
    assert recorder.lanes({}, band(1, 60_000_000), 0.0, is_whole=True) is None
    assert LaneRecorder().lanes({}, band(1, 0), 0.0, is_whole=True) is None


def test_a_clock_that_was_set_back_adds_nothing() -> None:
    recorder = LaneRecorder()
    recorder.add(cycle(window(10 * STEP_NS, STEP_NS, STEP_NS, {A: 10}), window(0, STEP_NS, STEP_NS, {A: 10})))
    assert len(recorder.seen) == 1 and sum(recorder.booked[A]) == 10


@pytest.mark.parametrize(("seen", "is_shown"), [(0.74, False), (0.75, True), (1.0, True)])
def test_lanes_are_shown_if_the_log_has_three_quarters_of_the_time(seen: float, is_shown: bool) -> None:
    recorder, length = LaneRecorder(), round(seen * 10**9)
    recorder.add(cycle(window(0, length, length, {A: length})))
    lanes = recorder.lanes({}, band(0, 10**6), 0.0, is_whole=True)
    assert (lanes is not None) == is_shown
    assert lanes is None or lanes.step_us * 1000 == STEP_NS
