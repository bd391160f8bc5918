"""A minute of a whole agent that reads the log of context switches: is what tenants did inside the band?"""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

from podgpu.agent.attribution import Attribution
from podgpu.agent.loop import Agent
from podgpu.agent.switch_log import SwitchLogs
from podgpu.host.procfs import Procfs
from podgpu.kube.log_dirs import LogDirs
from podgpu.model import Card, Snapshot
from podgpu.sources.nvml.source import NvmlSource
from podgpu.sources.switches.watcher import SwitchWatcher
from tests.gpu.switching.listening import Check
from tests.gpu.tenants import band_of, truth
from tests.gpu.work import INTERVAL, Load, Tenant, at_work, balances, booked
from tests.samples.replay import true_shares
from tests.tree import SETTINGS

LONGEST = 100.0  # seconds until there must be a full minute
TENANTS = (Tenant("agent-0", "tensor", 0.5, 0.0, 0.0), Tenant("agent-1", "tensor", 0.03, 0.07, 0.5))


def checked_agent() -> Iterator[Check]:
    with at_work(*TENANTS) as (loads, folder):
        snapshot, released, end = asyncio.run(_watched(folder))
        time.sleep(1)  # for the last bursts to be over
        yield from _judged(snapshot.cards[0], loads, end)
    part = next(status for status in snapshot.parts if status.name == "switches")
    errors = {error.reason: error.count for error in snapshot.errors if error.source == "switches"}
    yield "the part", f"up {part.up}, {part.fault}, errors {errors}", part.up and not errors
    yield "a release lets go", str(released), released


async def _watched(folder: Path) -> tuple[Snapshot, bool, float]:
    """Watch until a minute is full."""
    attribution = Attribution(
        interval=INTERVAL,
        pod_sources=[LogDirs(folder)],
        processes=Procfs(Path("/proc")),
        switch_logs=SwitchLogs(SwitchWatcher(), always=False),
    )
    sampler = NvmlSource(interval=INTERVAL, library=None, watched=attribution.watched)
    agent = Agent(sampler, node="bench", interval=INTERVAL, settings=SETTINGS, attribution=attribution)
    running = asyncio.create_task(agent.run())
    snapshot, deadline = agent.snapshot, time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        snapshot = await agent.changed(snapshot)
        if snapshot.cards and any(tenant.booking.band for tenant in snapshot.cards[0].tenants):
            break
    end = snapshot.cards[0].at + time.time() - time.monotonic()
    released = await agent.release(5)
    running.cancel()
    await agent.close()
    return snapshot, released, end


def _judged(card: Card, loads: list[Load], end: float) -> Iterator[Check]:
    band = band_of(card)
    shares = true_shares(truth(loads, end - band.elapsed_us / 1e6, end))
    assert card.balance
    assert card.balance.band
    busy = card.balance.band.booked_us
    for load, share in zip(loads, shares, strict=True):
        booking = booked(card, load)
        assert booking.band
        least, most, mean = (
            100 * part / busy for part in (booking.band.least_us, booking.band.most_us, booking.band.booked_us)
        )
        seconds = (booking.resident_us or 0) / 1e6
        figures = f"true {100 * share:.1f}, booked {mean:.1f}, band {least:.1f}-{most:.1f}, {seconds:.1f} s on the card"
        yield (
            f"{load.tenant.name} by {booking.method}",
            figures,
            booking.method == "resident" and least <= mean <= most,
        )
    yield "sums", str(balances(card)), balances(card)
    switching = card.balance.switching_us or 0
    figures = f"{card.balance.switches} switches, {switching / 1e6:.2f} s, now {card.balance.switching_ratio}"
    yield "switching", figures, bool(card.balance.switches)
