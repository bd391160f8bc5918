"""A tenant that no sample names has nearly half a card: what checks of the log at random moments make of it."""

from pathlib import Path

import pytest

from podgpu.agent.attribution import Attributed
from tests.agent.stage import check_card
from tests.agent.switch_log.shared_card import SharedCard, bookings

MINUTE = 60.0


async def played(card: SharedCard, seconds: float) -> Attributed:
    end = card.seconds + seconds
    while card.seconds < end:
        snapshot = await card.cycle()
        if balance := snapshot.cards[0].balance:
            check_card(snapshot.cards[0], balance)
    return snapshot


@pytest.mark.parametrize(("interval", "seed"), [(1.0, 1), (2.0, 2), (5.0, 3), (5.0, 4)])
async def test_after_two_minutes_the_books_are_right(tmp_path: Path, interval: float, seed: int) -> None:
    card = SharedCard(tmp_path, checks=True, interval=interval, seed=seed)
    await played(card, 2 * MINUTE)
    first, begin = bookings(await card.cycle()), card.now_ns
    seen, hidden = bookings(await played(card, MINUTE))
    moved = [after.busy_us - before.busy_us for before, after in zip(first, (seen, hidden), strict=True)]
    true = card.resident(begin, card.now_ns)
    assert true > 0.4
    assert moved[1] / sum(moved) == pytest.approx(true, abs=0.03)
    assert hidden.method == seen.method == "checked"


async def test_it_is_called_undersampled_and_its_neighbour_oversampled_and_nobody_worse(tmp_path: Path) -> None:
    card = SharedCard(tmp_path, checks=True)
    seen, hidden = bookings(await played(card, 3 * MINUTE))
    assert hidden.sampling
    assert seen.sampling
    assert (hidden.sampling.found, seen.sampling.found) == ("undersampled", "oversampled")
    assert hidden.sampling.named_ratio == 0
    assert hidden.sampling.error_ratio == pytest.approx(-seen.sampling.error_ratio)
    assert hidden.sampling.error_ratio < -0.4


async def test_the_likely_range_holds_the_truth_and_what_is_booked(tmp_path: Path) -> None:
    card = SharedCard(tmp_path, checks=True)
    await played(card, 2 * MINUTE)
    begin = card.now_ns
    _, hidden = bookings(await played(card, MINUTE))
    assert hidden.band
    band, true = hidden.band, card.resident(begin, card.now_ns) * hidden.band.most_us
    assert (band.certainty, band.rests_on) == ("estimated", "checks")
    assert band.least_us <= band.likely_least_us <= true <= band.likely_most_us <= band.most_us
    assert band.likely_least_us <= band.booked_us <= band.likely_most_us
    assert band.likely_most_us - band.likely_least_us < 0.2 * band.elapsed_us


async def test_without_checks_the_range_is_called_likely_and_the_bounds_hold(tmp_path: Path) -> None:
    card = SharedCard(tmp_path, checks=False)
    seen, hidden = bookings(await played(card, MINUTE + 5))
    for booking in (seen, hidden):
        assert booking.band
        assert (booking.method, booking.band.certainty, booking.band.rests_on) == ("measured", "estimated", "samples")
        assert (booking.band.least_us, booking.band.most_us) == (0, seen.busy_us)
    assert hidden.busy_us == 0


async def test_tenants_out_of_step_with_the_samples_are_represented(tmp_path: Path) -> None:
    card = SharedCard(tmp_path, checks=True)
    card.hides = False
    for booking in bookings(await played(card, 10 * MINUTE)):
        assert booking.sampling
        assert booking.sampling.found == "represented"
        assert booking.sampling.error_ratio == 0
    assert len(card.reader.checked) == pytest.approx(10 * MINUTE / 6.6, abs=2)


async def test_a_log_that_hides_whose_each_slice_is_corrects_nothing(tmp_path: Path) -> None:
    card = SharedCard(tmp_path, checks=True)
    card.is_blurred = True
    seen, hidden = bookings(await played(card, 3 * MINUTE))
    assert (seen.method, hidden.method) == ("measured", "measured")
    assert seen.sampling is None
    assert hidden.band
    assert hidden.band.rests_on == "samples"


async def test_once_nobody_hides_any_more_the_books_follow(tmp_path: Path) -> None:
    card = SharedCard(tmp_path, checks=True)
    await played(card, 3 * MINUTE)
    card.hides = False
    await played(card, 4 * MINUTE)
    first, begin = bookings(await card.cycle()), card.now_ns
    last = bookings(await played(card, MINUTE))
    moved = [after.busy_us - before.busy_us for before, after in zip(first, last, strict=True)]
    assert moved[1] / sum(moved) == pytest.approx(card.resident(begin, card.now_ns), abs=0.05)
