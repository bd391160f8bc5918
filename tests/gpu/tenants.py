"""Fresh tenants on one real GPU: is what each really did, minute by minute, inside the band that podgpu gives?

Each tenant is a process in the cgroup of a made-up pod (needs root and cgroup v2), so that the whole way from the
driver's PID to the pod's name is the real one. They work in random bursts. What a band claims is the card's time, so
the truth is who was on the card, by the driver's log of context switches, read beside the agent: a figure where the
card never rests, a range where it does. Without the log, what their kernels take alone is the truth. Changes no setting
of the card. Passes if 95 % of the minutes are inside, memory is exact, and sums are exact in every snapshot.

`tenants.py [FILE.json.gz]` writes a recording of the driver's samples, by default to `$OUT/looks.json.gz`, for
`python -m tests.samples`. From the environment: MINUTES of each set, SETS as in `tensor,mem;tensor,mem,infer`, SEED.
40 tenant-minutes in nine minutes: MINUTES=4 SETS="tensor,mem,infer,tensor,mem;infer,mem,tensor,infer,tensor".
"""

import asyncio
import gzip
import json
import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])

from podgpu.agent.attribution import Attribution  # noqa: E402 - the path is set above
from podgpu.agent.loop import Agent  # noqa: E402
from podgpu.agent.switch_log import SwitchLogs  # noqa: E402
from podgpu.host.procfs import Procfs  # noqa: E402
from podgpu.kube.log_dirs import LogDirs  # noqa: E402
from podgpu.ledger.residency import Evidence, Stay, residency  # noqa: E402
from podgpu.model import BusyWindow, Card  # noqa: E402
from podgpu.sources.nvml.source import NvmlSource  # noqa: E402
from tests.gpu.looks import Looks  # noqa: E402
from tests.gpu.switching.listening import Heard, Listening  # noqa: E402
from tests.gpu.work import (  # noqa: E402
    INTERVAL,
    Burst,
    Load,
    Tenant,
    at_work,
    balances,
    booked,
    memory_of_nvidia_smi,
)
from tests.samples.replay import Verdict, true_shares, verdict  # noqa: E402
from tests.tree import SETTINGS  # noqa: E402

MINUTES = int(os.environ.get("MINUTES", "2"))
SETS = os.environ.get("SETS", "tensor,tensor;tensor,mem;tensor,mem,infer")
SEED = int(os.environ.get("SEED", "0")) or time.time_ns() % 2**32
ENOUGH = 0.95
LISTEN_LONGER = 12.0  # seconds, for the agent to start


def drawn(kinds: str, chance: random.Random) -> list[Tenant]:
    """Draw bursts from 5 to 150 ms and pauses from 10 to 200 ms. Each third tenant never rests."""
    tenants = []
    for number, kind in enumerate(kinds.split(",")):
        name = f"{kind}-{number}"
        if chance.random() < 1 / 3:
            tenants.append(Tenant(name, kind, 0.5, 0.0, 0.0))
        else:
            burst, pause = 0.005 * 30 ** chance.random(), 0.01 * 20 ** chance.random()
            tenants.append(Tenant(name, kind, round(burst, 3), round(pause, 3), 0.5))
    return tenants


@dataclass
class Sums:
    """Whether the books balanced in each snapshot so far, and what was booked while the energy counter rose."""

    snapshots: int = 0
    off: int = 0
    first_mj: tuple[int, int] | None = None  # by the counter, by the books
    last_mj: tuple[int, int] = (0, 0)

    def note(self, card: Card) -> None:
        energy = next((each.value for each in card.readings if each.metric == "energy_joules_total"), None)
        if card.balance is None or energy is None:
            return
        self.snapshots += 1
        self.off += not balances(card)
        counted = round(1000 * energy)
        if counted != self.last_mj[0]:  # else it was not read anew
            self.last_mj = counted, card.balance.energy_mj
            self.first_mj = self.first_mj or self.last_mj

    def __str__(self) -> str:
        counted, found = (last - first for first, last in zip(self.first_mj or (0, 0), self.last_mj, strict=True))
        return f"{self.off} of {self.snapshots} snapshots off; booked {found} of the {counted} mJ that the card counted"


@dataclass(frozen=True)
class Minute:
    """A period that is over: its wall time, the card at its end, and the card's busy share."""

    begin: float
    end: float
    card: Card
    busy: float


async def watched(
    folder: Path, sums: Sums, number: int = MINUTES, logs: SwitchLogs | None = None
) -> tuple[list[Minute], dict[int, int]]:
    """Return so many minutes, and the mebibytes of each process by nvidia-smi right after the last."""
    attribution = Attribution(
        interval=INTERVAL, pod_sources=[LogDirs(folder)], processes=Procfs(Path("/proc")), switch_logs=logs
    )
    agent = Agent(
        NvmlSource(interval=INTERVAL, library=None, watched=attribution.watched),
        node="bench",
        interval=INTERVAL,
        settings=SETTINGS,
        attribution=attribution,
    )
    running = asyncio.create_task(agent.run())
    minutes: list[Minute] = []
    snapshot, busy_us = agent.snapshot, 0
    while len(minutes) < number:
        snapshot = await agent.changed(snapshot)
        for card in snapshot.cards[:1]:
            sums.note(card)
            band = next((tenant.booking.band for tenant in card.tenants if tenant.booking.band), None)
            if band and card.balance and (not minutes or band_of(minutes[-1].card) != band):
                end = card.at + time.time() - time.monotonic()
                busy, busy_us = (card.balance.busy_us - busy_us) / band.elapsed_us, card.balance.busy_us
                minutes.append(Minute(end - band.elapsed_us / 1e6, end, card, busy))
    memory = memory_of_nvidia_smi()
    running.cancel()
    await agent.close()
    return minutes, memory


def band_of(card: Card) -> Any:
    return next(tenant.booking.band for tenant in card.tenants if tenant.booking.band)


def within(bursts: list[Burst], begin: float, end: float) -> list[Burst]:
    """Cut off what is outside. Of a burst that is cut, the kernels go by time."""
    cut = []
    for first, last, done in bursts:
        inside = min(last, end) - max(first, begin)
        if inside > 0:
            cut.append((max(first, begin), min(last, end), done * inside / (last - first)))
    return cut


def truth(loads: list[Load], begin: float, end: float) -> dict[str, Any]:
    """What the tenants did in a time, as a recording has it."""
    cut = [within(load.bursts(), begin, end) for load in loads]
    return {
        "tenants": [
            [tenant.kind, tenant.burst, tenant.pause, tenant.jitter] for tenant in (load.tenant for load in loads)
        ],
        "logs": [{"bursts": own, "steps": sum(done for _, _, done in own)} for own in cut],
    }


def titled(load: Load, number: int) -> str:
    tenant = load.tenant
    rhythm = f"{1 / tenant.every:.0f} fps" if tenant.every else f"{1000 * tenant.pause:.0f} ms"
    return f"{tenant.kind} {1000 * tenant.burst:.0f}/{rhythm}, minute {number}"


def judged_by_kernels(minute: Minute, number: int, loads: list[Load]) -> Iterator[Verdict]:
    shares = true_shares(truth(loads, minute.begin, minute.end))
    for load, share in zip(loads, shares, strict=True):
        band = booked(minute.card, load).band
        assert band, "a tenant without a band"
        yield verdict(titled(load, number), share * minute.busy, band)


def judged_by_residency(
    minute: Minute, number: int, loads: list[Load], heard: Heard, windows: list[BusyWindow]
) -> Iterator[Verdict]:
    inside = [
        window for window in windows if minute.begin <= window.begin_ns / 1e9 and window.end_ns / 1e9 <= minute.end
    ]
    evidence = Evidence(windows=tuple(inside), slices=tuple(heard.slices))
    found = residency(evidence, {load.process.pid: load.uid for load in loads})
    assert found.busy_ns > 0.9 * (found.busy_ns + found.blind_ns), "the log misses much of the minute"
    for load in loads:
        band, stay = booked(minute.card, load).band, found.stays.get(load.uid, Stay())
        assert band, "a tenant without a band"
        least, true, most = (
            minute.busy * part / found.busy_ns for part in (stay.least_ns, stay.booked_ns, stay.most_ns)
        )
        yield replace(verdict(titled(load, number), true, band), true_range=(least, most))


def heard_or_none(listening: Listening) -> Heard | None:
    try:
        return listening.heard()
    except RuntimeError as error:
        print(f"  no log of context switches, so kernel time is the truth: {error}", flush=True)
        return None


@dataclass(frozen=True)
class Outcome:
    verdicts: list[Verdict]
    sums: Sums
    is_memory_exact: bool
    recorded: dict[str, Any]


def observed(tenants: list[Tenant]) -> Outcome:
    sums = Sums()
    with at_work(*tenants, seed=SEED) as (loads, folder):
        with Looks() as looks:
            listening = Listening(60 * MINUTES + LISTEN_LONGER)
            minutes, memory = asyncio.run(watched(folder, sums))
            heard = heard_or_none(listening)
        verdicts = [
            verdict
            for number, minute in enumerate(minutes, 1)
            for verdict in (
                judged_by_residency(minute, number, loads, heard, looks.windows)
                if heard
                else judged_by_kernels(minute, number, loads)
            )
        ]
        last = minutes[-1].card
        equal = all((booked(last, load).memory_bytes or 0) >> 20 == memory[load.process.pid] for load in loads)
        began, ended = looks.answers[0][0], looks.answers[-1][0]
        recorded = truth(loads, began, ended) | {
            "pids": [load.process.pid for load in loads],
            "process": looks.answers,
            "t0": began,
        }
    return Outcome(verdicts, sums, equal, recorded)


def printed(verdict: Verdict) -> None:
    true, read, least, most = (100 * part for part in (verdict.true, verdict.booked, verdict.least, verdict.most))
    by_log = "({:.1f}-{:.1f})".format(*(100 * part for part in verdict.true_range or (verdict.true,) * 2))
    figures = f"true {true:5.1f} {by_log:<13} booked {read:5.1f}  band {least:5.1f}-{most:5.1f}"
    print(f"  {verdict.name:<36} {figures}  {'inside' if verdict.is_inside else 'OUTSIDE'}", flush=True)


def written(path: Path, recorded: dict[str, Any]) -> None:
    with gzip.open(path, "wt") as file:
        json.dump(recorded, file)


def destination() -> Path | None:
    if len(sys.argv) > 1:
        return Path(sys.argv[1])
    return Path(os.environ["OUT"]) / "looks.json.gz" if "OUT" in os.environ else None


def main() -> int:
    print(f"SEED={SEED} MINUTES={MINUTES} SETS='{SETS}'", flush=True)
    chance = random.Random(SEED)
    verdicts: list[Verdict] = []
    recorded: dict[str, Any] = {}
    exact = True
    for number, kinds in enumerate(SETS.split(";"), 1):
        outcome = observed(drawn(kinds, chance))
        memory = "memory exact" if outcome.is_memory_exact else "memory OFF"
        print(f"set {number}: {kinds.replace(',', ' + ')}; {memory}; {outcome.sums}")
        for found in outcome.verdicts:
            printed(found)
        verdicts += outcome.verdicts
        exact &= outcome.is_memory_exact and outcome.sums.snapshots > 0 and not outcome.sums.off
        recorded[f"{number} {kinds}"] = outcome.recorded
        if path := destination():
            written(path, recorded)
    inside = sum(verdict.is_inside for verdict in verdicts)
    watched_minutes = MINUTES * len(SETS.split(";"))
    sums = "exact sums" if exact else "sums or memory OFF"
    share = 100 * inside / max(1, len(verdicts))
    print(f"inside {inside} of {len(verdicts)} tenant-minutes ({share:.1f} %), {sums} over {watched_minutes} minutes")
    return 0 if exact and inside >= ENOUGH * len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
