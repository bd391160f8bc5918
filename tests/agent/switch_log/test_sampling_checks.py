"""A tenant that rests around each of the driver's samples, so that none names it, while it has nearly half a card."""

from pathlib import Path
from random import Random

import pytest

from podgpu.agent.sampling_checks import SamplingChecks
from tests.agent.stage import check_card
from tests.agent.switch_log.shared_card import SharedCard, bookings

MINUTE = 60.0


async def played(card: SharedCard, seconds: float) -> None:
    end = card.seconds + seconds
    while card.seconds < end:
        snapshot = await card.cycle()
    assert snapshot.cards[0].balance
    check_card(snapshot.cards[0], snapshot.cards[0].balance)


@pytest.mark.parametrize(("interval", "chance"), [(1.0, 0.5), (2.0, 0.5), (5.0, 0.0), (5.0, 0.5), (5.0, 0.999)])
async def test_after_two_minutes_the_books_are_right(tmp_path: Path, interval: float, chance: float) -> None:
    card = SharedCard(tmp_path, checks=True, interval=interval, chance=lambda: chance)
    await played(card, 2 * MINUTE)
    first, begin = bookings(await card.cycle()), card.now_ns
    await played(card, MINUTE)
    snapshot = await card.cycle()
    seen, hidden = bookings(snapshot)
    moved = [after.busy_us - before.busy_us for before, after in zip(first, (seen, hidden), strict=True)]
    true = card.resident(begin, card.now_ns)
    assert true > 0.4
    assert moved[1] / sum(moved) == pytest.approx(true, abs=0.05)
    assert hidden.method == seen.method == "resident"
    assert hidden.sampling
    assert seen.sampling
    assert hidden.sampling.evades
    assert not seen.sampling.evades
    assert hidden.sampling.named_ratio == 0
    assert hidden.sampling.evasion_ratio == pytest.approx(true, abs=0.05)
    assert card.reader.is_open


async def test_an_honest_tenant_is_not_accused_and_the_log_is_seldom_open(tmp_path: Path) -> None:
    card = SharedCard(tmp_path, checks=True, chance=Random(1).random)
    card.hides = False
    for _ in range(30 * 12):
        snapshot = await card.cycle()
        assert not any(booking.sampling and booking.sampling.evades for booking in bookings(snapshot))
        assert {booking.method for booking in bookings(snapshot)} == {"measured"}
        assert {booking.resident_us for booking in bookings(snapshot)} == {None}
    assert all(booking.sampling for booking in bookings(snapshot))
    opened = card.reader.opened
    assert len(opened) in (15, 16), "in the first minute, and once in two"
    assert sum(end - begin for begin, end in opened) <= card.seconds / 22


async def test_once_nobody_hides_any_more_looks_decide_again(tmp_path: Path) -> None:
    card = SharedCard(tmp_path, checks=True)
    await played(card, 2 * MINUTE)
    assert card.reader.is_open
    card.hides = False
    await played(card, 4 * MINUTE)
    found = bookings(await card.cycle())
    assert {booking.method for booking in found} == {"measured"}
    assert not any(booking.sampling and booking.sampling.evades for booking in found)
    await played(card, MINUTE)
    begin, end = card.reader.opened[-1]
    assert end - begin <= 5


async def test_the_first_minute_that_is_shown_begins_with_the_log_and_is_true(tmp_path: Path) -> None:
    """What evaded samples said before is not in it."""
    card = SharedCard(tmp_path, checks=True, chance=lambda: 0.5)
    snapshot = await card.cycle()
    while not any(booking.band for booking in bookings(snapshot)):
        snapshot = await card.cycle()
    seen, hidden = bookings(snapshot)
    assert hidden.band
    assert seen.band
    assert not hidden.band.undersampled
    true = 0.99 * card.resident(card.now_ns - 60_000_000_000, card.now_ns)
    for band, share in ((hidden.band, true), (seen.band, 0.99 - true)):
        assert band.ratio(band.booked_us) == pytest.approx(share, abs=0.01)


async def test_without_the_log_the_truth_is_inside_the_bounds(tmp_path: Path) -> None:
    card = SharedCard(tmp_path, checks=False)
    await played(card, 1.5 * MINUTE)
    seen, hidden = bookings(await card.cycle())
    assert hidden.band
    assert seen.band
    assert hidden.band.booked_us == 0
    assert hidden.band.undersampled
    assert not seen.band.undersampled
    assert hidden.band.most_us == seen.band.booked_us
    assert seen.band.least_us == 0
    assert hidden.sampling is None


@pytest.mark.parametrize("cpu", [0.0, 0.01])
async def test_whoever_waits_for_work_is_not_suspected(tmp_path: Path, cpu: float) -> None:
    card = SharedCard(tmp_path, checks=False)
    card.cpu[80] = cpu
    await played(card, 1.5 * MINUTE)
    seen, hidden = bookings(await card.cycle())
    assert hidden.band
    assert seen.band
    assert not hidden.band.undersampled
    assert hidden.band.ratio(hidden.band.most_us) <= 0.0101  # in none of 300 samples
    assert seen.band.ratio(seen.band.least_us) > 0.9


async def test_a_tenant_that_samples_name_fairly_is_not_suspected(tmp_path: Path) -> None:
    card = SharedCard(tmp_path, checks=False)
    card.hides = False
    await played(card, 1.5 * MINUTE)
    assert not any(booking.band and booking.band.undersampled for booking in bookings(await card.cycle()))


async def test_nobody_is_called_honest_by_a_log_that_hides_him(tmp_path: Path) -> None:
    """As without the right to see the processes of other users."""
    card = SharedCard(tmp_path, checks=True)
    card.is_blurred = True
    await played(card, 3 * MINUTE)
    found = bookings(await card.cycle())
    assert [booking.sampling for booking in found] == [None, None]
    assert found[1].band
    assert found[1].band.undersampled


def test_a_log_that_takes_long_to_open_is_still_read_for_a_cycle() -> None:
    now = 0.0
    checks = SamplingChecks(clock=lambda: now, chance=lambda: 0.0)
    assert checks.begins("GPU")
    now = 4.0
    assert checks.over() == []
    now = 9.0
    assert checks.over() == ["GPU"]
    assert not checks.begins("GPU")


def first_check() -> float:
    """When the first one begins, by the system's own chance."""
    now = 0.0
    checks = SamplingChecks(clock=lambda: now)
    while not checks.begins("GPU"):
        now += 0.1
    return now


def test_nobody_can_foresee_when_a_check_comes() -> None:
    begins = [first_check() for _ in range(50)]
    assert min(begins) < 20
    assert max(begins) > 38
    assert len({round(begin, 3) for begin in begins}) > 25
