"""A tenant that hides from the driver's samples on a real GPU: do the books still say what it had?

One tenant computes all the time. Another one rests for 20 ms around each sample of the driver, so that none names it.
Each is a process in the cgroup of a made-up pod (needs root and cgroup v2, PyTorch, and podgpu's dependencies on
PYTHONPATH). Changes no setting of the card. Prints a table and takes less than 8 minutes.

    off     without the log of context switches: what both had is inside the bounds
    check   with --switches=check: after two minutes what is booked is within 5 points of the time on the card
    honest  with --switches=check and a tenant that rests at times of its own: nobody is accused, and what it costs

From the environment: PARTS (such as `off,check`), and INTERVAL in seconds. With `$OUT`, the figures are written there.
"""

import asyncio
import json
import os
import sys
import time
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])

from podgpu.agent.attribution import Attribution  # noqa: E402 - the path is set above
from podgpu.agent.loop import Agent  # noqa: E402
from podgpu.agent.sampling_checks import ProcessorTime  # noqa: E402
from podgpu.agent.switch_log import SwitchLogs  # noqa: E402
from podgpu.host.proc_stat import processor_time_us  # noqa: E402
from podgpu.host.procfs import Procfs  # noqa: E402
from podgpu.kube.log_dirs import LogDirs  # noqa: E402
from podgpu.model import Booking, Card, Snapshot  # noqa: E402
from podgpu.sources.nvml.source import NvmlSource  # noqa: E402
from podgpu.sources.switches.watcher import SwitchWatcher  # noqa: E402
from tests.gpu.switching.listening import Check, Listening  # noqa: E402
from tests.gpu.work import Load, Tenant, at_work, balances, booked  # noqa: E402
from tests.tree import SETTINGS  # noqa: E402

INTERVAL = float(os.environ.get("INTERVAL", "5"))
SETTLED_SECONDS = 120.0  # from then on the books must be right
MEASURED_SECONDS = 30.0
HONEST_SECONDS = 75.0  # until the first check is over
COST_SECONDS = 120.0
CLOSE = 0.05
MARKS = {None: "    ", True: "ok  ", False: "FAIL"}

BUSY = Tenant("evasion-a", "tensor", 0.5, 0.0, 0.0)
HIDER = Tenant("evasion-b", "hider", 0.002, 0.022, 0.0)
RESTS = Tenant("evasion-b", "tensor", 0.18, 0.02, 0.5)  # as often, but whenever it likes


@dataclass
class Running:
    agent: Agent
    watcher: SwitchWatcher | None
    sampler: NvmlSource

    def cpu_ms(self) -> tuple[float, float]:
        """Return the CPU time of the sampler and of the reading process so far."""
        return _ran_ms(self.sampler.pid), _ran_ms(self.watcher.pid if self.watcher else None)


def _ran_ms(pid: int | None) -> float:
    """To the nanosecond: a check takes less than a tick."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat") if pid else ()
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e6


@asynccontextmanager
async def running(folder: Path, *, checks: bool) -> AsyncIterator[Running]:
    """A whole agent, with the books of real pods."""
    watcher = SwitchWatcher() if checks else None
    attribution = Attribution(
        interval=INTERVAL,
        pod_sources=[LogDirs(folder)],
        processes=Procfs(Path("/proc")),
        switch_logs=SwitchLogs(watcher, always=False, checks_only=True) if watcher else None,
        processor_time=ProcessorTime(partial(processor_time_us, Path("/proc"))),
    )
    sampler = NvmlSource(interval=INTERVAL, library=None, watched=attribution.watched)
    agent = Agent(sampler, node="bench", interval=INTERVAL, settings=SETTINGS, attribution=attribution)
    task = asyncio.create_task(agent.run())
    try:
        yield Running(agent, watcher, sampler)
    finally:
        task.cancel()
        await agent.close()


async def until(agent: Agent, is_there: Callable[[Card], bool], seconds: float) -> Snapshot:
    snapshot, deadline = agent.snapshot, time.monotonic() + seconds
    while time.monotonic() < deadline:
        snapshot = await agent.changed(snapshot)
        if snapshot.cards and is_there(snapshot.cards[0]):
            return snapshot
    return snapshot


def has_band(card: Card) -> bool:
    return any(tenant.booking.band for tenant in card.tenants)


def shown(booking: Booking) -> str:
    band, sampling = booking.band, booking.sampling
    parts = [f"method {booking.method}"]
    if band:
        least, mean, most = (100 * band.ratio(part) for part in (band.least_us, band.booked_us, band.most_us))
        parts.append(f"last minute {mean:.1f} ({least:.1f}-{most:.1f})" + " undersampled" * band.undersampled)
    if sampling:
        named, there = 100 * sampling.named_ratio, 100 * sampling.resident_ratio
        parts.append(
            f"named {named:.1f} % of {sampling.samples}, on the card {there:.1f} %" + " EVADES" * sampling.evades
        )
    return ", ".join(parts)


def checked_off() -> Iterator[Check]:
    """The time on the card is read by this program, the minute is the agent's."""

    async def watched(folder: Path) -> tuple[Card, Listening, float]:
        async with running(folder, checks=False) as running_agent:
            await until(running_agent.agent, lambda card: len(card.tenants) > 1, 60)
            listening, (before, _), began = Listening(60), running_agent.cpu_ms(), time.monotonic()
            card = (await until(running_agent.agent, has_band, 90)).cards[0]
            return card, listening, (running_agent.cpu_ms()[0] - before) / (time.monotonic() - began)

    with at_work(BUSY, HIDER) as (loads, folder):
        card, listening, sampler_ms = asyncio.run(watched(folder))
        heard = listening.heard()
    yield "the sampler without checks", f"{sampler_ms:.2f} ms of CPU a second", None
    resident = heard.by_pid()
    total = sum(resident[load.process.pid] for load in loads)
    assert card.balance
    assert card.balance.band
    busy = card.balance.band.ratio(card.balance.band.booked_us)
    for load in loads:
        booking = booked(card, load)
        assert booking.band
        share = busy * resident[load.process.pid] / total
        least, most = (booking.band.ratio(part) for part in (booking.band.least_us, booking.band.most_us))
        yield (
            f"{load.tenant.kind}: on the card {100 * share:.1f} % is inside",
            shown(booking),
            least <= share <= most,
        )
    yield "sums", str(balances(card)), balances(card)
    yield "log", f"{heard.records_per_second:.0f} records/s, odd {dict(heard.counts)}", None


@dataclass
class Books:
    """What two tenants were booked, and how long they were on the card."""

    at: float
    busy_us: list[int]
    resident_us: list[int]


def books(card: Card, loads: list[Load]) -> Books:
    of = [booked(card, load) for load in loads]
    return Books(time.monotonic(), [booking.busy_us for booking in of], [booking.resident_us or 0 for booking in of])


def checked_check() -> Iterator[Check]:
    async def watched(folder: Path, loads: list[Load]) -> tuple[float | None, Books, Books, Card]:
        async with running(folder, checks=True) as running_agent:
            await until(running_agent.agent, lambda card: len(card.tenants) > 1, 60)
            began = time.monotonic()
            await until(running_agent.agent, lambda card: evades(card, loads[1]), SETTLED_SECONDS)
            found = time.monotonic() - began
            left = SETTLED_SECONDS - found
            snapshot = await until(
                running_agent.agent, lambda _: time.monotonic() - began >= SETTLED_SECONDS, left + 20
            )
            first = books(snapshot.cards[0], loads)
            measured = first.at + MEASURED_SECONDS
            snapshot = await until(running_agent.agent, lambda _: time.monotonic() >= measured, MEASURED_SECONDS + 20)
            card = snapshot.cards[0]
            return (found if evades(card, loads[1]) else None), first, books(card, loads), card

    with at_work(BUSY, HIDER) as (loads, folder):
        found, first, last, card = asyncio.run(watched(folder, loads))
    yield "found", f"after {found:.0f} s" if found else "never", found is not None
    moved = [after - before for before, after in zip(first.busy_us, last.busy_us, strict=True)]
    there = [after - before for before, after in zip(first.resident_us, last.resident_us, strict=True)]
    for number, load in enumerate(loads):
        share = moved[number] / (sum(moved) or 1)
        residency = there[number] / (sum(there) or 1)
        figures = f"booked {100 * share:.1f} %, on the card {100 * residency:.1f} %, of both; "
        is_close = bool(there[number]) and abs(share - residency) <= CLOSE
        yield f"{load.tenant.kind}", figures + shown(booked(card, load)), is_close
    yield "sums", str(balances(card)), balances(card)


def evades(card: Card, load: Load) -> bool:
    found = next((tenant.booking.sampling for tenant in card.tenants if tenant.container.pod_uid == load.uid), None)
    return found is not None and found.evades


@dataclass
class Honest:
    """Two tenants that do not hide: what checks cost, in milliseconds a second, and whom they accused."""

    card: Card
    sampler_ms: float
    reader_ms: float
    checks: int
    accused: set[str]


def checked_honest() -> Iterator[Check]:
    """Measures the reading process from after its start: that is paid once for as long as cards are shared."""

    async def watched(folder: Path) -> Honest:
        async with running(folder, checks=True) as running_agent:
            accused, checks = set[str](), set[int]()

            def look(card: Card) -> bool:
                found = [(each.container.pod, each.booking.sampling) for each in card.tenants]
                accused.update(pod for pod, sampling in found if sampling and sampling.evades)
                checks.update(sampling.samples for _, sampling in found if sampling)
                return bool(checks)

            await until(running_agent.agent, look, HONEST_SECONDS)  # the first check is over
            before, began = running_agent.cpu_ms(), time.monotonic()
            checks.clear()
            snapshot = await until(
                running_agent.agent,
                lambda card: look(card) and time.monotonic() - began > COST_SECONDS,
                COST_SECONDS + 20,
            )
            seconds = time.monotonic() - began
            cost = [(late - early) / seconds for early, late in zip(before, running_agent.cpu_ms(), strict=True)]
            return Honest(snapshot.cards[0], cost[0], cost[1], len(checks) - 1, accused)

    with at_work(BUSY, RESTS) as (loads, folder):
        found = asyncio.run(watched(folder))
    yield "nobody is accused", str(sorted(found.accused) or "nobody"), not found.accused
    figures = f"{found.reader_ms:.2f} ms of CPU a second, {found.checks} checks in {COST_SECONDS:.0f} s"
    yield "the reading process", figures, found.reader_ms <= 1 and found.checks > 0
    yield "the sampler", f"{found.sampler_ms:.2f} ms of CPU a second", None
    for load in loads:
        yield f"{load.tenant.name}", shown(booked(found.card, load)), None
    yield "sums", str(balances(found.card)), balances(found.card)


def main() -> int:
    failed, began, rows = 0, time.monotonic(), []
    parts: dict[str, Callable[[], Iterator[Check]]] = {
        "off": checked_off,
        "check": checked_check,
        "honest": checked_honest,
    }
    for part in os.environ.get("PARTS", "off,check,honest").split(","):
        try:
            for name, figure, passed in parts[part]():
                failed += passed is False
                rows.append((part, name, figure, passed))
                print(f"{MARKS[passed]} {part:<6} {name}: {figure}", flush=True)
        except Exception as error:
            traceback.print_exc()
            failed += 1
            print(f"FAIL {part:<6} {error!r}", flush=True)
        print(f"     {part:<6} over after {time.monotonic() - began:.0f} s", flush=True)
    if "OUT" in os.environ:
        (Path(os.environ["OUT"]) / "evasion.json").write_text(json.dumps(rows))
    print(f"{failed} failed, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
