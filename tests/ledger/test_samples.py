"""The likely range of a period's samples: by Wilson's score, and wider where they differ from batch to batch."""

import pytest

from podgpu.ledger.cycle import CycleBooking, CycleBooks
from podgpu.ledger.samples import SampleEvidence, busy_share

SECOND = 1_000_000


def evidence(*shares: float, seconds: int = 5) -> SampleEvidence:
    """Cycles in which samples named a party so often, on a card that was always busy."""
    found = SampleEvidence()
    for share in shares:
        time = seconds * SECOND
        books = CycleBooks(gpu="GPU", bookings={}, memory_bytes=None, busy_us=time, energy_mj=0, elapsed_us=time)
        found.add(CycleBooking(named_us=round(share * time)), books, time)
    return found


def test_a_half_of_300_samples_is_a_half_give_or_take_eight_hundredths() -> None:
    low, high = evidence(*[0.5] * 12).last_run()
    assert (round(low, 3), round(high, 3)) == (0.420, 0.580)


def test_work_that_beats_with_the_samples_has_a_wider_range() -> None:
    """A period of 204 ms meets the samples in the same phase for seconds, so that batches differ."""
    low, high = evidence(*[0.9, 0.2] * 6).last_run()
    assert high - low > 0.2
    assert low < 0.55 < high


def test_short_cycles_are_gathered_into_batches() -> None:
    brief = evidence(*[share for share in [0.9, 0.2] * 6 for _ in range(5)], seconds=1)
    assert brief.last_run() == pytest.approx(evidence(*[0.9, 0.2] * 6).last_run())


def test_never_named_is_not_never_there() -> None:
    assert evidence(*[0.0] * 12).last_run() == (0.0, 0.01)
    assert SampleEvidence().last_run() == (0.0, 0.0)


def test_the_card_rests_at_somebodys_expense() -> None:
    assert busy_share((0.4, 0.6), 0.7) == pytest.approx((0.1, 0.6))
    assert busy_share((0.1, 0.9), 0.5) == (0.0, 0.5)
