"""Bands hold what is booked, add up with the card's busy time, and are never narrower than the evidence."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podgpu.ledger.band import Period
from podgpu.ledger.cycle import CycleBooking, CycleBooks, Party, SpotCheck, TenantKey
from podgpu.ledger.samples import SAMPLE_US
from podgpu.model import Band, ContainerRef, Process

SECOND = 1_000_000
A, B, C = (TenantKey("GPU-1", "", ContainerRef("ns", name, "main", name)) for name in "abc")
RUNNING = [Process(pid=1, kinds=("compute",))]


def cycle(shares: dict[Party, float], busy: float, *, seconds: int = 5, method: str = "measured") -> CycleBooks:
    """A cycle in which samples named the parties so often, on a card that was busy for so much of the time."""
    elapsed, total = seconds * SECOND, round(busy * seconds * SECOND)
    parts = {party: int(share * total) for party, share in shares.items()}
    entries: dict[Party, CycleBooking] = {
        party: CycleBooking(processes=RUNNING, method=method, named_us=part, busy_us=part, energy_mj=part // 1000)
        for party, part in parts.items()
    }
    entries["unknown"] = CycleBooking(busy_us=total - sum(parts.values()))
    active = sum(entry.energy_mj for entry in entries.values())
    return CycleBooks(
        gpu="GPU-1",
        bookings=entries,
        memory_bytes=None,
        busy_us=total,
        energy_mj=active,
        active_mj=active,
        elapsed_us=elapsed,
        is_watched=True,
    )


def bands(*sheets: CycleBooks) -> dict[Party, Band]:
    period = Period()
    for sheet in sheets:
        period.add(sheet)
    return dict(period.bands())


def ratios(band: Band) -> tuple[float, float, float]:
    """What is likely, and what is booked."""
    found = (part / band.elapsed_us for part in (band.likely_least_us, band.booked_us, band.likely_most_us))
    return tuple(found)  # type: ignore[return-value]


def test_on_a_busy_card_the_band_is_narrow() -> None:
    found = bands(*[cycle({A: 0.85, B: 0.15}, 0.95)] * 60)
    least, booked, most = ratios(found[A])
    assert (round(booked, 3), most - least < 0.12) == (0.807, True)
    assert least <= 0.85 - 0.05 <= 0.85 <= most


def test_named_in_half_of_the_samples_is_half_of_the_time_by_wilsons_score() -> None:
    """Of 300 samples, with 2.8 deviations: a half, give or take 8 %."""
    least, _, most = ratios(bands(cycle({A: 0.5, B: 0.5}, 1.0, seconds=60))[A])
    assert (round(least, 4), round(most, 4)) == (0.4202, 0.5798)


def test_looks_prove_nothing_about_who_had_a_process() -> None:
    band = bands(*[cycle({A: 0.85, B: 0.15}, 0.95)] * 60)[A]
    assert (band.least_us, band.most_us) == (0, 60 * round(0.95 * 5 * SECOND))
    assert (band.certainty, band.rests_on) == ("estimated", "samples")


def checked(sheet: CycleBooks, resident: dict[Party, float], **more: int) -> CycleBooks:
    """The same cycle with a check in it, which saw the parties for such shares of the time."""
    named: dict[Party, float] = {A: 0.5, B: 0.5}
    check = SpotCheck(seconds=5.0, busy_seconds=5.0, resident=resident, named=named)
    return replace(sheet, checks=(check,), named=named, **more)


def test_what_checks_saw_before_a_tenant_came_says_nothing_about_it() -> None:
    """It has been there for the second half of the minute, and had two fifths of that."""
    before = checked(cycle({A: 1.0}, 1.0), {A: 1.0})
    since = checked(cycle({A: 0.5, B: 0.5}, 1.0), {A: 0.6, B: 0.4})
    band = bands(*[before] * 6, *[since] * 6)[B]
    assert band.rests_on == "checks"
    assert 0.35 * 30 * SECOND < band.likely_least_us <= 0.4 * 30 * SECOND <= band.likely_most_us


def test_a_log_that_fails_is_no_check_of_the_time_that_it_misses() -> None:
    sheet = checked(cycle({A: 0.5, B: 0.5}, 1.0), {A: 0.9, B: 0.1})
    assert bands(*[sheet] * 12)[A].rests_on == "checks"
    logged = checked(cycle({A: 0.5, B: 0.5}, 1.0, method="resident"), {A: 0.9, B: 0.1}, switches=5, switching_us=1)
    assert bands(*[logged] * 6, *[sheet] * 6)[A].rests_on == "samples"


def test_on_an_idle_card_looks_say_little() -> None:
    least, _, most = ratios(bands(*[cycle({A: 0.6, B: 0.4}, 0.3)] * 60)[A])
    assert least == 0.0
    assert most == pytest.approx(0.3)


def test_whoever_is_alone_has_no_band() -> None:
    band = bands(cycle({A: 1.0}, 0.4, method="exclusive"))[A]
    assert band.least_us == band.booked_us == band.most_us
    assert band.least_mj == band.booked_mj == band.most_mj
    assert (band.certainty, band.rests_on) == ("exact", "")


@pytest.mark.parametrize("method", ["reserved", "equal"])
def test_where_nothing_is_measured_the_band_is_all_of_it(method: str) -> None:
    found = bands(cycle({A: 0.5, B: 0.5}, 0.4, method=method))
    assert (found[A].least_us, found[A].most_us) == (0, 2 * SECOND)
    assert (found[A].certainty, found[A].rests_on) == ("estimated", "claims")


def test_on_a_shared_instance_the_band_is_the_instances_time() -> None:
    key_a, key_b = (TenantKey("GPU-1", "MIG-1", each.container) for each in (A, B))
    sheet = cycle({key_a: 0.25, key_b: 0.25}, 0.8, method="weighted")
    assert bands(sheet)[key_a].most_us == sheet.bookings[key_a].busy_us + sheet.bookings[key_b].busy_us


def test_other_instances_are_not_in_the_band() -> None:
    here, beside = (TenantKey("GPU-1", "MIG-1", each.container) for each in (A, B))
    elsewhere = TenantKey("GPU-1", "MIG-2", C.container)
    sheet = cycle({here: 0.25, beside: 0.25, elsewhere: 0.5}, 0.8, method="weighted")
    assert bands(sheet)[here].most_us == sheet.bookings[here].busy_us + sheet.bookings[beside].busy_us


def test_energy_is_as_uncertain_as_the_busy_time_that_it_was_drawn_in() -> None:
    idle, busy = [cycle({A: 0.6, B: 0.4}, 0.3)] * 60, [cycle({A: 0.85, B: 0.15}, 0.95)] * 60
    band = bands(*idle)[A]
    assert (band.likely_least_mj, band.likely_most_mj) == (0, sum(sheet.active_mj for sheet in idle))
    band = bands(*busy)[A]
    whole_us, whole_mj = (sum(getattr(sheet, name) for sheet in busy) for name in ("busy_us", "active_mj"))
    assert 0 < band.likely_least_mj == pytest.approx(whole_mj * band.likely_least_us / whole_us, rel=0.01)
    assert band.likely_most_mj == pytest.approx(whole_mj * band.likely_most_us / whole_us, rel=0.01)
    assert (band.least_mj, band.most_mj) == (0, whole_mj)


def test_even_with_the_log_a_neighbour_may_have_drawn_the_energy() -> None:
    sheet = cycle({A: 0.85, B: 0.15}, 0.95, method="resident")
    sheet.bookings[A].least_us = sheet.bookings[A].most_us = sheet.bookings[A].busy_us
    band = bands(sheet)[A]
    assert (band.certainty, band.least_us) == ("exact", band.most_us)
    assert (band.least_mj, band.most_mj) == (0, sheet.active_mj)


def test_whoever_has_no_process_did_not_run() -> None:
    sheet = cycle({A: 0.7, B: 0.3}, 0.9)
    sheet.bookings[C] = CycleBooking(method="")
    assert (bands(sheet)[C].least_us, bands(sheet)[C].most_us) == (0, 0)


def test_not_to_be_named_leaves_room_for_chance() -> None:
    sheet = cycle({A: 1.0, B: 0.0}, 0.9)
    assert 0 < bands(sheet)[B].likely_most_us < SECOND
    assert bands(*[sheet] * 60)[B].likely_most_us / 60 < bands(sheet)[B].likely_most_us


SHARES = st.floats(0, 1).flatmap(lambda a: st.floats(0, 1 - a).map(lambda b: {A: a, B: b, C: 1 - a - b}))
METHODS = st.sampled_from(["measured", "exclusive", "instance", "weighted", "reserved", "equal"])
SHEETS = st.lists(st.builds(lambda s, y, m: cycle(s, y, method=m), SHARES, st.floats(0, 1), METHODS), max_size=20)


@given(SHEETS)
def test_a_band_holds_what_is_booked_and_all_add_up(sheets: Sequence[CycleBooks]) -> None:
    found = bands(*sheets)
    for band in found.values():
        assert 0 <= band.least_us <= band.likely_least_us <= band.booked_us <= band.likely_most_us <= band.most_us
        assert 0 <= band.least_mj <= band.likely_least_mj <= band.booked_mj <= band.likely_most_mj <= band.most_mj
    busy = sum(sheet.busy_us for sheet in sheets)
    assert sum(band.least_us for band in found.values()) <= busy <= sum(band.most_us for band in found.values())


@given(st.lists(st.tuples(SHARES, st.floats(0.01, 1)), min_size=1, max_size=20))
def test_a_likely_range_is_never_narrower_than_the_looks_say(
    cycles: Sequence[tuple[dict[Party, float], float]],
) -> None:
    found = bands(*(cycle(shares, busy) for shares, busy in cycles))
    share = sum(shares[A] for shares, _ in cycles) / len(cycles)
    busy = sum(busy for _, busy in cycles) / len(cycles)
    least, _, most = ratios(found[A])
    slack = 10 / SAMPLE_US  # the books round to whole microseconds
    assert least <= max(0.0, share + busy - 1) + slack
    assert most >= min(share, busy) - slack
