"""The demo's log of context switches: it adds up, and what is booked by it is what the processes did."""

from itertools import pairwise

import pytest

from podgpu.sources.simulator.context_switches import (
    CHECK_NS,
    LONGEST_NS,
    ROTATION_NS,
    STRETCH_NS,
    busy_windows,
    spot_logs,
    switch_log,
)
from podgpu.sources.simulator.scenario import CARDS
from podgpu.sources.simulator.timeline import CardTimeline, ReadingWindow
from tests.sources.simulator.test_booking import played

CARD = next(card for card in CARDS if card.logs_switches)
CHECKED = next(card for card in CARDS if card.checks_switches)


@pytest.mark.parametrize("start", range(0, 1200, 171))
def test_slices_follow_each_other_and_no_moment_counts_twice(start: int) -> None:
    log = switch_log(CardTimeline(CARD, seed=1), ReadingWindow(start + 0.3, start + 5.4))
    assert all(part.begin_ns < part.end_ns for part in log.slices)
    assert all(before.end_ns <= after.begin_ns for before, after in pairwise(log.slices))
    resident = sum(part.end_ns - part.begin_ns for part in log.slices)
    assert resident + log.switching_ns <= log.end_ns - log.begin_ns
    assert resident + log.switching_ns > 0.99 * (log.end_ns - log.begin_ns)


def test_logs_and_windows_of_successive_readings_have_no_hole() -> None:
    timeline, times = CardTimeline(CARD, seed=1), [0.0, 1.03, 2.01, 7.5]
    read = [ReadingWindow(*pair) for pair in pairwise(times)]
    logs = [switch_log(timeline, covered) for covered in read]
    windows = [window for covered in read for window in busy_windows(timeline, covered)]
    assert all(before.end_ns == after.begin_ns for before, after in pairwise(logs))
    assert all(before.end_ns == after.begin_ns for before, after in pairwise(windows))


def test_of_an_hour_nobody_has_read_only_the_end_is_in_the_log() -> None:
    log = switch_log(CardTimeline(CARD, seed=1), ReadingWindow(0, 3600))
    assert log.end_ns - log.begin_ns == LONGEST_NS


def test_each_check_comes_with_one_reading_however_often_the_card_is_read() -> None:
    timeline, times = CardTimeline(CHECKED, seed=1), [0.0, 1.03, 7.5, 7.6, 14.0, 22.9, 30.0, 39.6]
    checks = [check for pair in pairwise(times) for check in spot_logs(timeline, ReadingWindow(*pair))]
    assert len(checks) == 39.6e9 // STRETCH_NS
    for number, check in enumerate(checks):
        begin, end = check.slices[0].begin_ns, check.slices[-1].end_ns
        assert end - begin == pytest.approx(CHECK_NS, abs=ROTATION_NS)
        assert number * STRETCH_NS - ROTATION_NS <= begin and end <= (number + 1) * STRETCH_NS
        assert all(before.end_ns <= after.begin_ns for before, after in pairwise(check.slices))
    phases = {check.slices[0].begin_ns % STRETCH_NS for check in checks}
    assert len(phases) == len(checks)


def test_of_an_hour_nobody_has_read_only_the_last_checks_come() -> None:
    assert len(spot_logs(CardTimeline(CHECKED, seed=1), ReadingWindow(0, 3600))) <= 2


def test_a_camera_is_on_the_card_25_times_a_second() -> None:
    (camera,) = [process.pid for process in CHECKED.processes if process.keeps_time]
    (check, *_) = spot_logs(CardTimeline(CHECKED, seed=1), ReadingWindow(0, 7))
    frames = {piece.begin_ns // 40_000_000 for piece in check.slices if piece.pid == camera}
    assert len(frames) == pytest.approx(0.3 * 25, abs=1)
    assert all(piece.begin_ns % 40_000_000 < 12_500_000 for piece in check.slices if piece.pid == camera)


async def test_what_is_booked_is_what_the_processes_did() -> None:
    timeline, done, booked, seconds = CardTimeline(CARD, seed=1), 0, dict[str, int](), list[float]()
    async for snapshot in played(5.0):
        card = snapshot.cards[CARD.index]
        seconds.append(card.at)
        booked = {tenant.container.pod: tenant.booking.busy_us for tenant in card.tenants}
        done += all(tenant.booking.method == "resident" for tenant in card.tenants)
    assert done > 20
    true = dict.fromkeys(booked, 0)
    for activity in timeline.activities(ReadingWindow(0, seconds[-1])):
        true[activity.process.tenant.split("/")[1]] += round(activity.load * seconds[-1] * 1e6)
    for pod, busy_us in booked.items():
        assert busy_us == pytest.approx(true[pod], abs=0.05 * sum(true.values()))
