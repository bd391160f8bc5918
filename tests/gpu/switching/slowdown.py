"""What tenants lose while the driver's log of context switches is read, in one run with and without in short turns."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import sqrt
from statistics import mean, median, stdev
from typing import Any

from tests.gpu.switching.listening import Check
from tests.gpu.switching.toggle import Toggle
from tests.gpu.tenants import within
from tests.gpu.work import Load, Tenant, at_work

PAIRS = int(os.environ.get("PAIRS", "40"))
SECONDS = 1.2  # of each half of a pair
SETTLE_SECONDS = 0.15  # after a reader was opened or closed
SURE = 1.96  # standard errors for 95 %


@dataclass(frozen=True)
class Case:
    """`command` is what the reader does. `most` is how many per cent may be lost."""

    name: str
    tenants: tuple[Tenant, ...]
    command: str
    most: float


def _busy(name: str, kind: str) -> Tenant:
    return Tenant(name, kind, 0.05, 0.0, 0.0)


CASES = (
    Case("a tenant alone, products", (_busy("cost-0", "tensor"),), "on", 0.2),
    Case("a tenant alone, copies", (_busy("cost-1", "mem"),), "on", 0.2),
    Case(
        "two in contention, GPM too",
        (_busy("cost-2", "tensor"), _busy("cost-3", "tensor")),
        "busy_sampler",
        2.0,
    ),
)


@dataclass
class Turns:
    """When each half of each pair was, without and with a reader, and what the readers said."""

    spans: list[dict[bool, tuple[float, float]]] = field(default_factory=list)
    readings: list[dict[str, Any]] = field(default_factory=list)


def checked_cost(deadline: float) -> Iterator[Check]:
    """Share the time that is left evenly among the cases."""
    for number, case in enumerate(CASES):
        share = (deadline - time.monotonic()) / (len(CASES) - number)
        yield from _checked(case, time.monotonic() + share)


def _checked(case: Case, deadline: float) -> Iterator[Check]:
    with at_work(*case.tenants) as (loads, _), Toggle() as toggle:
        time.sleep(4)  # for the clocks to settle
        turns = _taken(toggle, case.command, deadline)
        time.sleep(0.3)  # for the last bursts to be over
        pairs = _speeds(loads, turns)
    losses = [100 * (1 - read / plain) for plain, read in pairs]
    loss, doubt = mean(losses), SURE * stdev(losses) / sqrt(len(losses))
    plain, read = (mean(pair[which] for pair in pairs) for which in (0, 1))
    figures = (
        f"{loss:+.2f} ± {doubt:.2f} % lost (95 %, {len(pairs)} pairs, median {median(losses):+.2f}, "
        f"{plain:.1f} and {read:.1f} kernels/s)"
    )
    is_shown = loss + doubt <= case.most
    verdict = "shown" if is_shown else "refuted" if loss - doubt > case.most else "not shown"
    passed = True if is_shown else False if verdict == "refuted" else None
    yield f"{case.name}, at most {case.most} %: {verdict}", figures, passed
    seconds, cpu, records, lost = (
        sum(reading[key] for reading in turns.readings) for key in ("seconds", "cpu", "records", "lost")
    )
    own, rate = 1000 * cpu / seconds, records / seconds
    is_cheap = own <= 5 * max(1, rate / 2000) if case.command == "on" else None
    yield f"CPU, {case.name}", f"{own:.1f} ms/s at {rate:.0f} records/s, {lost} lost", is_cheap


def _taken(toggle: Toggle, command: str, deadline: float) -> Turns:
    """Every other pair is the other way round, so that drift cancels out."""
    turns = Turns()
    while len(turns.spans) < PAIRS and (time.monotonic() < deadline or len(turns.spans) < 2):
        turns.spans.append({})
        for is_read in (False, True) if len(turns.spans) % 2 else (True, False):
            found = toggle.say(command if is_read else "off")
            turns.readings += [found] if found else []
            time.sleep(SETTLE_SECONDS)
            begin = time.time()
            time.sleep(SECONDS)
            turns.spans[-1][is_read] = begin, time.time()
    found = toggle.say("off")
    turns.readings += [found] if found else []
    return turns


def _speeds(loads: list[Load], turns: Turns) -> list[tuple[float, float]]:
    """Return kernels a second without and with a reader, pair by pair."""
    bursts = [load.bursts() for load in loads]

    def speed(begin: float, end: float) -> float:
        return sum(done for own in bursts for _, _, done in within(own, begin, end)) / (end - begin)

    return [(speed(*span[False]), speed(*span[True])) for span in turns.spans]
