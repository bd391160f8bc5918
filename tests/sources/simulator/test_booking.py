"""What an agent books of the demo: every joule to somebody, and a band for whoever shares."""

from collections.abc import AsyncIterator

import pytest

from podgpu.agent.loop import Agent
from podgpu.assembly.agent import open_attribution
from podgpu.config import Config
from podgpu.model import Card, Snapshot
from podgpu.sources.simulator.source import Simulator
from tests.tree import SETTINGS

SECONDS = 130


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def played(interval: float) -> AsyncIterator[Snapshot]:
    """Yield each snapshot of two minutes. No reading comes quite in time."""
    clock = Clock()
    attribution = open_attribution(Config(source="simulator", interval=interval))
    agent = Agent(
        Simulator(seed=1, clock=clock),
        node="demo",
        interval=interval,
        settings=SETTINGS,
        attribution=attribution,
    )
    while clock.now < SECONDS:
        await agent.cycle()
        yield agent.snapshot
        clock.now += interval * (1.02 if clock.now % 2 < 1 else 0.99)
    await agent.close()


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
            drawn = [
                tenant.booking.power_watts for tenant in card.tenants if tenant.booking.allocated_ratio == 1
            ]
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
    assert wide == {(5, "measured"), (6, "measured")}
    assert (4, "resident") in bands  # by the log of context switches
    assert {(0, "exclusive"), (3, "instance")} < bands.keys() - wide


def power(card: Card) -> float:
    return next(reading.value for reading in card.readings if reading.metric == "power_watts")
