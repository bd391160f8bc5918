"""Recorded pages all the way to the metrics: what a page does not say is absent, never 0, and no power is invented."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator

import pytest

from podgpu.model import Card, Snapshot
from podgpu.views.native import families
from tests.sources.dcgm.exporter import RECORDED, FakeExporter, recorded
from tests.sources.dcgm.test_booking import agent_over

CYCLE = 0.02  # seconds
NAMES = sorted(path.stem for path in RECORDED.glob("*.prom"))
# Of what a card must report for a container to be booked that much of it.
ACTIVITY = {"utilization_ratio", "graphics_engine_active_ratio"}
ENERGY = {"energy_joules_total", "power_watts"}
NEEDS = {
    "busy_seconds_total": ACTIVITY,
    "busy_settled_seconds_total": ACTIVITY,
    "busy_bound_seconds_total": ACTIVITY,
    "busy_likely_seconds_total": ACTIVITY,
    "sm_utilization_ratio": ACTIVITY,
    "energy_joules_total": ENERGY,
    "energy_bound_joules_total": ENERGY,
    "energy_likely_joules_total": ENERGY,
    "power_watts": {"power_watts"},
}
JOULES = re.compile(rb"^(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION\{.*\}) (\S+)$", re.MULTILINE)


def held(page: bytes) -> bytes:
    """The page, with a pod on each MIG instance: some were recorded where nobody ran."""
    page = page.replace(b'container="",namespace="",pod=""', b'container="main",namespace="ns",pod="slice"')
    if b'pod="' in page:
        return page
    return re.sub(rb'GPU_I_ID="(\d+)"', rb'GPU_I_ID="\1",container="main",namespace="ns",pod="slice-\1"', page)


def later(page: bytes, steps: int) -> bytes:
    """The page after its energy counters took so many steps of 20 kJ, each half a minute of a busy card."""
    return JOULES.sub(lambda row: b"%s %d" % (row[1], float(row[2]) + 20_000_000 * steps), page)


async def snapshots(name: str) -> AsyncIterator[Snapshot]:
    """Cycles in which the counters stand, move for the first time, stand and move again."""
    page = held(recorded(name))
    async with FakeExporter(page) as exporter, agent_over(exporter) as agent:
        for steps in (0, 0, 1, 1, 2):
            exporter.page = later(page, steps)
            await asyncio.sleep(CYCLE)
            await agent.cycle()
            yield agent.snapshot


def reported(card: Card) -> set[str]:
    return {reading.metric for reading in card.readings}


def values(snapshot: Snapshot, prefix: str) -> Iterator[tuple[str, str, float]]:
    """Series of a scope: family without the prefix, the card's UUID, and the value."""
    for family in families(snapshot, {}):
        if family.name.startswith(prefix):
            for key, value in family.samples.items():
                yield family.name.removeprefix(prefix), key[0].pairs()["uuid"], value


@pytest.mark.parametrize("name", NAMES)
async def test_nothing_is_0_that_the_page_does_not_say(name: str) -> None:
    async for snapshot in snapshots(name):
        cards = {card.gpu.uuid: card for card in snapshot.cards}
        for prefix in ("podgpu_container_", "podgpu_unattributed_"):
            for family, uuid, value in values(snapshot, prefix):
                if not value and family not in ("memory_bytes", "allocated_seconds_total", "unknown_use_seconds_total"):
                    assert reported(cards[uuid]) & NEEDS[family], (family, uuid)
                assert family not in ("processes", "memory_used_bytes"), "a page has no processes"


@pytest.mark.parametrize("name", NAMES)
async def test_nobody_draws_more_than_the_card(name: str) -> None:
    async for snapshot in snapshots(name):
        for card in snapshot.cards:
            own = next((reading.value for reading in card.readings if reading.metric == "power_watts"), None)
            drawn = [tenant.booking.power_watts or 0.0 for tenant in card.tenants]
            drawn += [part.power_watts or 0.0 for part in card.rest]
            if own is not None:
                assert sum(drawn) == pytest.approx(own) or not any(drawn)


MIG_PAGES = ["mig_a100_docs_gpu_plus_instances", "mig_a30_pod_hostname_issue68", "mig_a800_8gpu_mixed_full"]


@pytest.mark.parametrize("name", MIG_PAGES)
async def test_of_who_holds_an_instance_of_unknown_size_nothing_is_said(name: str) -> None:
    """A page does not say how large an instance is: neither a share nor a part of anything is known."""
    seen = 0
    async for snapshot in snapshots(name):
        split = {card.gpu.uuid for card in snapshot.cards if card.instances}
        on_slices = [tenant for card in snapshot.cards for tenant in card.tenants if tenant.mig]
        seen += len(on_slices)
        for tenant in on_slices:
            booking = tenant.booking
            assert (booking.bookable, booking.allocated_ratio, booking.power_watts) == (False, None, None)
        for family, uuid, _ in values(snapshot, "podgpu_container_"):
            assert uuid not in split or family in ("info", "state", "shared", "instance_utilization_ratio")
    assert seen
