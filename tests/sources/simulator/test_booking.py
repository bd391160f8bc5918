"""What an agent books of the demo: every joule to somebody, and a band for whoever shares."""

from collections.abc import AsyncIterator

import pytest

from podgpu.model import Card, Snapshot
from tests.sources.simulator.clocked_agent import cycles

SECONDS = 130


async def played(interval: float) -> AsyncIterator[Snapshot]:
    """Yield each snapshot of two minutes."""
    async for agent in cycles(interval, SECONDS):
        yield agent.snapshot


@pytest.mark.parametrize("interval", [1.0, 5.0])
async def test_nothing_is_booked_to_nobody(interval: float) -> None:
    async for snapshot in played(interval):
        unknown = [rest for card in snapshot.cards for rest in card.rest if rest.reason == "unknown"]
        assert {(rest.busy_us, rest.energy_mj) for rest in unknown} == {(0, 0)}


@pytest.mark.parametrize("interval", [1.0, 5.0])
async def test_who_is_alone_draws_what_the_card_draws(interval: float) -> None:
    compared = 0
    async for snapshot in played(interval):
        for card in snapshot.cards:
            drawn = [tenant.booking.power_watts for tenant in card.tenants if tenant.booking.allocated_ratio == 1]
            if drawn and drawn[0] is not None:
                assert drawn == [pytest.approx(power(card), abs=0.01)]
                compared += 1
    assert compared > 4 * (SECONDS / interval - 3)


async def test_bands_are_wide_only_where_a_card_is_shared() -> None:
    last = [snapshot async for snapshot in played(5.0)][-1]
    bands = {
        (card.gpu.index, tenant.booking.method): tenant.booking.band
        for card in last.cards
        for tenant in card.tenants
        if tenant.booking.band
    }
    wide = {place for place, band in bands.items() if band.most_us - band.least_us > band.elapsed_us / 20}
    assert wide == {(5, "measured"), (6, "checked")}
    assert (4, "resident") in bands  # by the log of context switches
    assert {(0, "exclusive"), (3, "instance")} < bands.keys() - wide


def power(card: Card) -> float:
    return next(reading.value for reading in card.readings if reading.metric == "power_watts")


async def test_lanes_add_up_to_what_was_booked_in_the_same_minute() -> None:
    compared = 0
    async for agent in cycles(5.0, SECONDS):
        for card in agent.snapshot.cards:
            lanes = agent.lanes(card.gpu.uuid)
            if lanes is None or not lanes.is_whole:
                continue
            band = card.balance.band if card.balance else None
            assert band and lanes.elapsed_us == band.elapsed_us
            booked = {tenant.container: tenant.booking.band.booked_us for tenant in card.tenants if tenant.booking.band}
            assert booked == {lane.container: sum(lane.busy_us) for lane in lanes.lanes if lane.container}
            assert sum(map(sum, (lane.busy_us for lane in lanes.lanes))) == band.booked_us
            assert len(lanes.seen_us) <= 350
            columns = zip(lanes.switching_us, *(lane.busy_us for lane in lanes.lanes), strict=True)
            # Windows that end before or after a reading make it a little more or less.
            assert max(map(sum, columns)) <= 1.1 * lanes.step_us
            compared += 1
    assert compared >= 12


async def test_only_a_card_with_a_log_of_context_switches_has_lanes() -> None:
    last = [agent async for agent in cycles(5.0, 80)][-1]
    assert [card.gpu.index for card in last.snapshot.cards if last.lanes(card.gpu.uuid)] == [4]
