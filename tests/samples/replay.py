"""Replays a recording of the driver's samples through the ledger, and compares its bands with what tenants really did.

A recording has, by name of the set: `tenants` and `logs` (their bursts and kernels done, the truth), `pids`, and
`process`, each answer of the driver: a time and (pid, stamp, busy percent, memory percent) of each look.
"""

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from podgpu.ledger.band import Period
from podgpu.ledger.book import book
from podgpu.ledger.cycle import Interval
from podgpu.model import SEES_ALL, Band, ContainerRef, Device, Gpu, Holder, Process, Reading

ABLE = replace(SEES_ALL, knows_owners=True)
ROUNDING = 1e-6  # the books count microseconds
CARD = Gpu(uuid="GPU-recorded", index=0)


@dataclass(frozen=True)
class Verdict:
    """One tenant of one set: shares of the time, 0 to 1.

    A log of context switches gives the truth as a range where the card rests.
    """

    name: str
    true: float
    booked: float
    least: float
    most: float
    true_range: tuple[float, float] | None = None

    @property
    def is_inside(self) -> bool:
        low, high = self.true_range or (self.true, self.true)
        return self.least - ROUNDING <= high and low <= self.most + ROUNDING


@dataclass(frozen=True)
class Look:
    at: float
    pid: int
    busy: float


def recording(path: Path) -> dict[str, Any]:
    with gzip.open(path) as file:
        found: dict[str, Any] = json.load(file)
        return found


def verdicts(name: str, recorded: dict[str, Any], cycle: float) -> Iterator[Verdict]:
    looks = list(_looks(recorded))
    period = _period(recorded, looks, cycle)
    bands = {
        party.container.pod: band for party, band in period.bands().items() if not isinstance(party, str)
    }
    busy = sum(look.busy for look in looks) / len(looks)
    for number, share in enumerate(true_shares(recorded)):
        kind = recorded["tenants"][number][0]
        yield verdict(f"{name} {number} {kind}", share * busy, bands[f"tenant-{number}"])


def verdict(name: str, true: float, band: Band) -> Verdict:
    booked, least, most = (part / band.elapsed_us for part in (band.booked_us, band.least_us, band.most_us))
    return Verdict(name, true, booked, least, most)


def _looks(recorded: dict[str, Any]) -> Iterator[Look]:
    for _, answer in recorded["process"]:
        for pid, stamp, busy, _ in answer:
            yield Look(stamp / 1e6, pid, busy / 100)


def _period(recorded: dict[str, Any], looks: Sequence[Look], cycle: float) -> Period:
    holders = {pid: _holder(pid, number) for number, pid in enumerate(recorded["pids"])}
    by_cycle: dict[int, list[Look]] = {}
    for look in looks:
        by_cycle.setdefault(int((look.at - looks[0].at) // cycle), []).append(look)
    period = Period()
    for seen in by_cycle.values():
        period.add(book(*_cycle(seen, recorded["pids"]), (), holders))
    return period


def _cycle(looks: Sequence[Look], pids: Sequence[int]) -> tuple[Device, Interval]:
    """What the driver answers at the end of a cycle: for each process the mean over the samples since."""
    elapsed_us = len(looks) * 200_000
    busy = sum(look.busy for look in looks) / len(looks)
    processes = tuple(
        Process(pid=pid, kinds=("compute",), sm_busy_us=round(ratio * elapsed_us), sm_ratio=ratio)
        for pid, ratio in _means(looks, pids)
    )
    device = Device(
        gpu=CARD, ability=ABLE, readings=(Reading("utilization_ratio", busy),), processes=processes
    )
    return device, Interval(elapsed_us=elapsed_us, busy_us=round(busy * elapsed_us))


def _means(looks: Sequence[Look], pids: Sequence[int]) -> Iterator[tuple[int, float]]:
    for pid in pids:
        yield pid, sum(look.busy for look in looks if look.pid == pid) / len(looks)


def _holder(pid: int, number: int) -> Holder:
    return Holder(
        pid=pid, kind="pod", container=ContainerRef("looks", f"tenant-{number}", "main", f"{number}")
    )


def true_shares(recorded: dict[str, Any]) -> list[float]:
    """Shares of the card's busy time. Kernels done are time used where all run the same kernel."""
    if len({tenant[0] for tenant in recorded["tenants"]}) == 1:
        done = [log["steps"] for log in recorded["logs"]]
    else:
        done = _bursts([log["bursts"] for log in recorded["logs"]])
    return [one / sum(done) for one in done]


def _bursts(bursts: Sequence[Sequence[Sequence[float]]]) -> list[float]:
    """Seconds of each tenant, where two overlap each has half of them."""
    edges = sorted(
        (time, change, number)
        for number, own in enumerate(bursts)
        for begin, end, _ in own
        for time, change in ((begin, 1), (end, -1))
    )
    at_work, seconds = [0] * len(bursts), [0.0] * len(bursts)
    before = edges[0][0]
    for time, change, number in edges:
        for other, is_at_work in enumerate(at_work):
            if is_at_work:
                seconds[other] += (time - before) / sum(at_work)
        at_work[number] += change
        before = time
    return seconds
