"""The recorded log of context switches of a real card, with what its tenants really did."""

from typing import Any

import pytest

from podgpu.model import BusyWindow, Span
from podgpu.sources.nvml.window_split import AHEAD, TENTH
from tests.samples.lag import measured
from tests.samples.switches import by_cycle, by_looks, by_tenths, findings, recording, sheets, slices

RECORDED: dict[str, Any] = recording()
LOGS = {name: slices(recorded) for name, recorded in RECORDED.items()}

# In hundredths of the card's busy time. With GPM's windows shifted by a constant 0.12 s these were 0.7, 20 and 64, but
# the second band did not hold what its tenants did: the windows were not where they were taken to be.
WIDEST = {"A+B": 0.8, "long+short": 33.0, "B+D": 71.0}


def width(name: str, windows: list[BusyWindow]) -> float:
    return 100 * max(finding.most - finding.least for finding in findings(RECORDED[name], LOGS[name], windows))


@pytest.mark.parametrize("name", WIDEST)
def test_bands_of_a_tenth_of_a_second_are_narrow(name: str) -> None:
    assert width(name, by_tenths(RECORDED[name])) <= WIDEST[name]


@pytest.mark.parametrize("cycle_ns", [1_000_000_000, 5_000_000_000])
@pytest.mark.parametrize("name", RECORDED)
def test_most_windows_are_cut_in_halves_in_order(name: str, cycle_ns: int) -> None:
    windows = by_tenths(RECORDED[name], cycle_ns)
    assert sum(window.end_ns - window.begin_ns == TENTH for window in windows) > 0.7 * len(windows)
    assert [window.end_ns for window in windows] == sorted(window.end_ns for window in windows)


@pytest.mark.parametrize("name", RECORDED)
def test_what_is_booked_is_inside_the_band_and_adds_up(name: str) -> None:
    for windows in (by_tenths(RECORDED[name]), by_looks(RECORDED[name])):
        found = findings(RECORDED[name], LOGS[name], windows)
        assert all(finding.least <= finding.booked <= finding.most for finding in found)
        assert sum(finding.booked for finding in found) == pytest.approx(1.0)


@pytest.mark.parametrize("name", RECORDED)
def test_the_books_of_every_cycle_are_exact(name: str) -> None:
    for sheet in sheets(RECORDED[name], LOGS[name], by_tenths(RECORDED[name])):
        assert sum(entry.busy_us for entry in sheet.bookings.values()) == sheet.busy_us
        assert sum(entry.energy_mj for entry in sheet.bookings.values()) == sheet.energy_mj
        assert {entry.method for entry in sheet.bookings.values() if entry.busy_us} == {"resident"}


@pytest.mark.parametrize("name", RECORDED)
def test_shorter_windows_prove_more(name: str) -> None:
    recorded = RECORDED[name]
    by_length = [by_tenths(recorded), by_looks(recorded), by_cycle(recorded, 1.0), by_cycle(recorded, 5.0)]
    widths = [width(name, windows) for windows in by_length]
    # Where the card is always busy there is nothing left to prove.
    assert widths == sorted(widths) or max(widths) < 1


@pytest.mark.parametrize("name", ["B+D", "long+short", "infer", "B+B"])
def test_what_tenants_did_is_inside_the_band(name: str) -> None:
    for windows in (by_tenths(RECORDED[name]), by_looks(RECORDED[name])):
        for finding in findings(RECORDED[name], LOGS[name], windows):
            assert finding.least <= finding.true <= finding.most


def test_on_a_card_that_is_always_busy_a_tenant_is_charged_for_the_switches_it_causes() -> None:
    """By kernels done it is 89.9 to 10.1. Each switch costs the same, however short the work is that it is made for."""
    busy, bursty = findings(RECORDED["A+B"], LOGS["A+B"], by_looks(RECORDED["A+B"]))
    assert busy.booked == pytest.approx(0.875, abs=0.005)
    assert bursty.booked == pytest.approx(0.125, abs=0.005)


def test_a_window_with_lost_records_is_booked_by_looks_and_proves_nothing() -> None:
    recorded = RECORDED["A+B"]
    windows = by_looks(recorded)[5:10]
    middle = (windows[2].begin_ns + windows[2].end_ns) // 2
    (seeing,) = sheets(recorded, LOGS["A+B"], windows)
    (blind,) = sheets(recorded, LOGS["A+B"], windows, [Span(middle, middle + 10)])
    assert seeing.busy_us == blind.busy_us
    for party, entry in seeing.bookings.items():
        if isinstance(party, str):
            continue
        doubtful = blind.bookings[party]
        assert entry.most_us - entry.least_us < 20_000
        # One of five windows of 200 ms, with a card that is 93 % busy.
        assert doubtful.most_us - doubtful.least_us == pytest.approx(190_000, rel=0.1)


@pytest.mark.parametrize("name", ["long+short"])
def test_gpms_tenths_lie_where_the_sampler_takes_them_to_be(name: str) -> None:
    lag = measured(RECORDED[name])
    assert abs(lag.ahead_ms - AHEAD / 1e6) <= 2
    assert lag.error < lag.constant_error / 3
    assert max(lag.delays_ms) - min(lag.delays_ms) >= 50  # so no constant will do
