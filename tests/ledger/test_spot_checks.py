"""Checks of the log at random moments beside the samples, by example."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.ledger.cycle import Party, SpotCheck
from podgpu.ledger.residency import Evidence, compared
from podgpu.ledger.spot_checks import Correction, corrected, corrections, estimate, judged, spot_check
from podgpu.model import BusyWindow, Slice, Span, SpotLog

MS = 1_000_000
PARTIES: dict[int, Party] = {1: "one", 2: "two"}


def check(resident: float, named: float, *, busy: float = 1.0, **more: bool) -> SpotCheck:
    """One that saw the first party for such a share, among samples that name it for another."""
    return SpotCheck(
        seconds=6.6,
        busy_seconds=6.6 * busy,
        resident={"one": resident, "two": 1 - resident},
        named={"one": named, "two": 1 - named},
        **more,
    )


CAMERA = [check(0.055 + 0.005 * (number % 3 - 1), 0.45 + 0.1 * (number % 5 - 2)) for number in range(20)]
SLOW = [check(float(number % 2), 0.9 * (number % 2) + 0.05) for number in range(20)]


def test_a_check_has_the_shares_of_the_time_on_the_card() -> None:
    log = SpotLog(stands_for=6.6, slices=(Slice(1, 0, 3), Slice(2, 3, 4), Slice(1, 4, 4), Slice(9, 4, 8)))
    found = spot_check(log, PARTIES, {"one": 1.0}, busy=0.5)
    assert found
    assert found.resident == {"one": 3 / 8, "two": 1 / 8, "unknown": 4 / 8}
    assert (found.seconds, found.busy_seconds, found.is_guess) == (6.6, 3.3, False)


def test_without_a_switch_the_samples_say_whose_context_it_was() -> None:
    found = spot_check(SpotLog(stands_for=6.6), PARTIES, {"one": 1.0}, busy=1.0)
    assert found
    assert (found.resident, found.is_guess) == ({"one": 1.0}, True)
    assert spot_check(SpotLog(stands_for=6.6), PARTIES, {}, busy=1.0) is None


def test_a_check_with_lost_records_counts_for_nothing() -> None:
    log = SpotLog(stands_for=6.6, slices=(Slice(1, 0, 3),), is_incomplete=True)
    assert spot_check(log, PARTIES, {"one": 1.0}, busy=1.0) is None


def test_a_camera_is_estimated_by_the_checks_whatever_samples_say() -> None:
    found = estimate("one", CAMERA[:9], CAMERA[9:], 0.448)
    assert found.share == pytest.approx(0.055, abs=0.01)
    assert found.error <= 0.02


def test_what_changes_over_seconds_is_estimated_by_checks_and_samples_together() -> None:
    """In this minute the samples name it more often than around the checks: it was there more often."""
    found = estimate("one", SLOW[:8], SLOW[8:], 0.77)
    assert found.share == pytest.approx(0.77, abs=0.01)


def test_few_checks_trust_no_sample() -> None:
    assert estimate("one", SLOW[:4], (), 1.0).share == pytest.approx(0.5)


def test_a_guess_leaves_a_doubt() -> None:
    sure, guessed = ([check(0.5, 0.5, is_guess=is_guess)] * 9 for is_guess in (False, True))
    assert estimate("one", sure, (), 0.5).error == 0.01
    assert estimate("one", guessed, (), 0.5).error > 0.3


def test_samples_are_read_as_the_checks_say() -> None:
    found = corrections(CAMERA)
    assert found["one"].share(0.45) == pytest.approx(0.055, abs=0.01)
    assert corrections(CAMERA[:3]) == {}
    divided = corrected({"one": 450_000, "two": 550_000}, found)
    assert divided["one"] == pytest.approx(55_000, abs=10_000)
    assert sum(divided.values()) == pytest.approx(1_000_000, abs=2)


def test_who_no_check_is_about_keeps_its_samples() -> None:
    found = corrected({"new": 500, "one": 500}, {"one": Correction(0.0, 0.5)})
    assert found == {"new": 500, "one": 500}


def test_an_idle_card_says_nothing_about_who_works() -> None:
    """While nothing works, the last context stays."""
    idle = [check(1.0, 0.0, busy=0.0)] * 20
    assert corrections([*idle, *SLOW])["one"] == corrections(SLOW)["one"]
    assert corrections(idle) == {}


def test_a_camera_is_oversampled_and_its_neighbour_undersampled() -> None:
    found = judged(CAMERA)
    assert (found["one"].found, found["two"].found) == ("oversampled", "undersampled")
    assert found["one"].error_ratio == pytest.approx(0.395, abs=0.01)
    assert found["two"].error_ratio == pytest.approx(-0.395, abs=0.01)


def test_small_or_uncertain_differences_are_not_worth_a_word() -> None:
    assert judged(SLOW)["one"].found == "represented"
    assert judged([check(0.5 + 0.001 * (number % 2), 0.46) for number in range(20)])["one"].found == "represented"
    assert judged(CAMERA[:15]) == {}


def test_a_log_that_hides_processes_says_nothing() -> None:
    hidden = [SpotCheck(seconds=6.6, busy_seconds=6.6, resident={"unknown": 1.0}, named={"one": 1.0})] * 20
    assert (corrections(hidden), judged(hidden)) == ({}, {})


SHARES = st.floats(0, 1)
CHECKS = st.lists(st.builds(check, SHARES, SHARES), min_size=4, max_size=20)


@given(CHECKS, SHARES)
def test_an_estimate_is_a_share_of_the_time(checks: Sequence[SpotCheck], named: float) -> None:
    found = estimate("one", checks, (), named)
    assert 0 <= found.span[0] <= found.share <= found.span[1] <= 1


@given(CHECKS, st.integers(0, 10**7), st.integers(0, 10**7))
def test_a_correction_divides_all_of_it(checks: Sequence[SpotCheck], one: int, two: int) -> None:
    divided = corrected({"one": one, "two": two}, corrections(checks))
    assert all(part >= 0 for part in divided.values())
    assert abs(sum(divided.values()) - one - two) <= 2


def windows(*busy: int) -> tuple[BusyWindow, ...]:
    """Each of 200 ms, with so many milliseconds of work."""
    return tuple(BusyWindow(200 * MS * number, 200 * MS * (number + 1), part * MS) for number, part in enumerate(busy))


def test_time_on_the_card_counts_as_much_as_the_card_was_busy() -> None:
    slices = (Slice(1, 0, 200 * MS), Slice(2, 200 * MS, 400 * MS))
    # The second one stays on the card after its work is done, which samples see as well.
    found = compared(Evidence(windows=windows(180, 20), slices=slices), PARTIES, {"one": 0.9, "two": 0.1})
    assert found
    assert found.resident == {"one": 0.9, "two": 0.1}
    assert found.busy_seconds == 0.2


def test_where_the_log_is_blind_or_has_no_windows_nothing_is_compared() -> None:
    slices = (Slice(1, 0, 5000 * MS),)
    whole = (BusyWindow(0, 5000 * MS, 5000 * MS),)
    for evidence in (
        Evidence(windows=windows(200), slices=slices, blind=(Span(0, 1),)),
        Evidence(windows=windows(200)),
        Evidence(windows=whole, slices=slices),
        Evidence(slices=slices),
    ):
        assert compared(evidence, PARTIES, {"one": 1.0}) is None
