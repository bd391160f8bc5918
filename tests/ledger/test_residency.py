"""What a log of context switches proves about a window, by example."""

import random

import pytest

from podgpu.ledger.residency import Evidence, filled, residency, resident_us
from podgpu.model import ENDED_PID, HIDDEN_PID, BusyWindow, Slice, Span, SwitchLog

PARTIES = {1: "one", 2: "two", 3: "three"}


def proven(
    busy_ns: int, *slices: Slice, blind: tuple[Span, ...] = (), length: int = 100
) -> dict[str, tuple[int, int, int]]:
    evidence = Evidence(windows=(BusyWindow(0, length, busy_ns),), slices=slices, blind=blind)
    stays = residency(evidence, PARTIES).stays
    return {str(party): (stay.least_ns, stay.booked_ns, stay.most_ns) for party, stay in stays.items()}


def test_whoever_is_alone_has_exactly_all_of_it() -> None:
    assert proven(70, Slice(1, 0, 100)) == {"one": (70, 70, 70)}


def test_whoever_has_no_slice_did_nothing() -> None:
    assert "three" not in proven(70, Slice(1, 0, 50), Slice(2, 50, 100))


def test_two_share_a_window_that_is_not_always_busy() -> None:
    assert proven(70, Slice(1, 0, 80), Slice(2, 80, 100)) == {"one": (50, 50, 70), "two": (0, 20, 20)}


def test_two_on_a_busy_card_are_exact() -> None:
    assert proven(100, Slice(1, 0, 80), Slice(2, 80, 100)) == {"one": (80, 80, 80), "two": (20, 20, 20)}


def test_idle_time_is_taken_to_be_at_the_end_of_the_longest_slices() -> None:
    slices = [Slice(1, 0, 10), Slice(2, 10, 20), Slice(1, 20, 30), Slice(2, 30, 100)]
    assert proven(45, *slices)["one"] == (0, 20, 20)
    assert proven(45, *slices)["two"] == (25, 25, 45)


def test_switching_that_counts_as_busy_is_nobodys_own() -> None:
    evidence = Evidence(windows=(BusyWindow(0, 100, 95),), slices=(Slice(1, 0, 40), Slice(2, 50, 90)))
    found = residency(evidence, PARTIES)
    assert found.busy_ns == 80
    assert found.stays["one"].booked_ns == found.stays["two"].booked_ns == 40


@pytest.mark.parametrize("pid", [HIDDEN_PID, ENDED_PID, 999])
def test_a_process_that_nobody_knows_is_unknown_and_not_spread_over_the_others(pid: int) -> None:
    found = proven(100, Slice(1, 0, 60), Slice(pid, 60, 100))
    assert found == {"one": (60, 60, 60), "unknown": (40, 40, 40)}


def test_a_window_with_lost_records_is_blind() -> None:
    evidence = Evidence(
        windows=(BusyWindow(0, 100, 50), BusyWindow(100, 200, 30)),
        slices=(Slice(1, 0, 200),),
        blind=(Span(90, 95),),
    )
    found = residency(evidence, PARTIES)
    assert (found.busy_ns, found.blind_ns) == (30, 50)


def test_a_busy_window_without_anybody_is_blind() -> None:
    assert residency(Evidence(windows=(BusyWindow(0, 100, 50),)), PARTIES).blind_ns == 50


def test_residency_counts_time_on_the_card_whether_busy_or_not() -> None:
    log = SwitchLog(begin_ns=0, end_ns=10_000, slices=(Slice(1, 0, 4000), Slice(0, 4000, 10_000)))
    assert resident_us(log, PARTIES) == {"one": 4, "unknown": 6}


def test_sums_are_exact_and_bookings_inside_whatever_the_slices() -> None:
    chance = random.Random(17)
    for _ in range(300):
        at, slices = 0, []
        for _ in range(chance.randrange(1, 12)):
            begin = at + chance.randrange(3)
            at = begin + chance.randrange(1, 40)
            slices.append(Slice(chance.choice([0, 1, 2, 3]), begin, at))
        busy = chance.randrange(at + 1)
        resident = sum(piece.end_ns - piece.begin_ns for piece in slices)
        found = proven(busy, *slices, length=at)
        assert sum(booked for _, booked, _ in found.values()) == min(busy, resident)
        assert all(least <= booked <= most for least, booked, most in found.values())


def test_pieces_of_one_length_are_filled_alike() -> None:
    assert filled(10, [("one", 6), ("two", 6)]) == {"one": 5, "two": 5}
