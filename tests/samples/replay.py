"""Replays a recording of the driver's samples through the ledger, and compares its bands with what tenants really did.

A recording has, by name of the set: `tenants` and `logs` (their bursts and kernels done, the truth), `pids`, and
`process`, each answer of the driver: a time and (pid, stamp, busy percent, memory percent) of each look.
"""

import dataclasses
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from podgpu.ledger.band import Period
from podgpu.ledger.book import book
from podgpu.ledger.cycle import CycleBooks, Interval
from podgpu.model import SEES_ALL, Band, ContainerRef, Device, Gpu, Holder, Process, Reading

ABLE = replace(SEES_ALL, knows_owners=True)
ROUNDING = 1e-6  # the books count microseconds
CARD = Gpu(uuid="GPU-recorded", index=0)
KERNELS_DONE, KERNEL_TIME = "kernels done", "kernel time"  # the same where all run the same kernel
ENOUGH_KERNELS = 5  # of a burst, to say how long each took


@dataclass(frozen=True)
class Verdict:
    """One tenant of one set: shares of the time, 0 to 1. `least` and `most` are likely, `proven` are bounds.

    A log of context switches gives the truth as a range where the card rests. `by` says what else it is by.
    """

    name: str
    true: float
    booked: float
    least: float
    most: float
    true_range: tuple[float, float] | None = None
    by: str = ""
    proven: tuple[float, float] = (0.0, 1.0)

    @property
    def is_inside(self) -> bool:
        """Whether the truth is likely by what the books say."""
        return self._is_in(self.least, self.most)

    @property
    def is_possible(self) -> bool:
        """Whether what is called a bound holds."""
        return self._is_in(*self.proven)

    def _is_in(self, least: float, most: float) -> bool:
        low, high = self.true_range or (self.true, self.true)
        return least - ROUNDING <= high and low <= most + ROUNDING


@dataclass(frozen=True)
class Look:
    at: float
    pid: int
    busy: float


def recording(path: Path) -> dict[str, Any]:
    with gzip.open(path) as file:
        found: dict[str, Any] = json.load(file)
        return found


def verdicts(
    name: str, recorded: dict[str, Any], cycle: float, seconds: Mapping[str, float] | None = None
) -> Iterator[Verdict]:
    """`seconds` are what a kernel of each kind takes alone, as far as other recordings know it better."""
    looks = list(looks_of(recorded))
    period = Period()
    for sheet in look_cycles(recorded, looks, cycle):
        period.add(sheet)
    bands = {party.container.pod: band for party, band in period.bands().items() if not isinstance(party, str)}
    busy = sum(look.busy for look in looks) / len(looks)
    for number, share in enumerate(true_shares(recorded, seconds)):
        kind = recorded["tenants"][number][0]
        found = verdict(f"{name} {number} {kind}", share * busy, bands[f"tenant-{number}"])
        yield dataclasses.replace(found, by=judge(recorded))


def verdict(name: str, true: float, band: Band) -> Verdict:
    booked, least, most = map(band.ratio, (band.booked_us, band.likely_least_us, band.likely_most_us))
    return Verdict(name, true, booked, least, most, proven=(band.ratio(band.least_us), band.ratio(band.most_us)))


def looks_of(recorded: dict[str, Any]) -> Iterator[Look]:
    for _, answer in recorded["process"]:
        for pid, stamp, busy, _ in answer:
            yield Look(stamp / 1e6, pid, busy / 100)


def look_cycles(recorded: dict[str, Any], looks: Sequence[Look], cycle: float) -> Iterator[CycleBooks]:
    """Book the looks in cycles of that length."""
    holders = {pid: _holder(pid, number) for number, pid in enumerate(recorded["pids"])}
    by_cycle: dict[int, list[Look]] = {}
    for look in looks:
        by_cycle.setdefault(int((look.at - looks[0].at) // cycle), []).append(look)
    for seen in by_cycle.values():
        yield book(*_cycle(seen, recorded["pids"]), (), holders)


def _cycle(looks: Sequence[Look], pids: Sequence[int]) -> tuple[Device, Interval]:
    """What the driver answers at the end of a cycle: for each process the mean over the samples since."""
    elapsed_us = len(looks) * 200_000
    busy = sum(look.busy for look in looks) / len(looks)
    processes = tuple(
        Process(pid=pid, kinds=("compute",), sm_busy_us=round(ratio * elapsed_us), sm_ratio=ratio)
        for pid, ratio in _means(looks, pids)
    )
    device = Device(gpu=CARD, ability=ABLE, readings=(Reading("utilization_ratio", busy),), processes=processes)
    return device, Interval(elapsed_us=elapsed_us, busy_us=round(busy * elapsed_us))


def _means(looks: Sequence[Look], pids: Sequence[int]) -> Iterator[tuple[int, float]]:
    for pid in pids:
        yield pid, sum(look.busy for look in looks if look.pid == pid) / len(looks)


def _holder(pid: int, number: int) -> Holder:
    return Holder(pid=pid, kind="pod", container=ContainerRef("looks", f"tenant-{number}", "main", f"{number}"))


def judge(recorded: dict[str, Any]) -> str:
    """Say what the true shares are by. Without a log of context switches, nobody knows who was on the card when."""
    return KERNELS_DONE if len(_kinds(recorded)) == 1 else KERNEL_TIME


def true_shares(recorded: dict[str, Any], seconds: Mapping[str, float] | None = None) -> list[float]:
    """Shares of the card's busy time: what the kernels of each tenant take alone. `seconds` are those of each kind.

    How long bursts lasted would not do: it shares evenly the time in which several had work, whatever kernels they ran.
    """
    by_kind = seconds or kernel_seconds([recorded])
    logs = zip(recorded["tenants"], recorded["logs"], strict=True)
    done = [log["steps"] * by_kind[tenant[0]] for tenant, log in logs]
    return [work / sum(done) for work in done]


def kernel_seconds(sets: Iterable[dict[str, Any]]) -> dict[str, float]:
    """What a kernel of each kind takes alone: the least that it took in any burst, but for one burst in a hundred.

    For a kind that was never alone this is too much.
    """
    found: dict[str, float] = {}
    for recorded in sets:
        for (kind, *_), log in zip(recorded["tenants"], recorded["logs"], strict=True):
            each = sorted((end - begin) / done for begin, end, done in log["bursts"] if done >= ENOUGH_KERNELS)
            if each:
                found[kind] = min(each[len(each) // 100], found.get(kind, inf))
    # A kind with no such burst counts as the slowest: it did next to nothing.
    slowest = max(found.values(), default=1.0)
    return {kind: found.get(kind, slowest) for recorded in sets for kind in _kinds(recorded)}


def _kinds(recorded: dict[str, Any]) -> set[str]:
    return {tenant[0] for tenant in recorded["tenants"]}
