"""Tenants at a frame rate and at random on one real GPU: what does podgpu say of each, and does it hold?

Each tenant is a process in the cgroup of a made-up pod (needs root and cgroup v2, PyTorch, and podgpu's dependencies on
PYTHONPATH). The truth is who was on the card, by the driver's log of context switches, read beside the agent by this
program. Changes no setting of the card. Prints a table; the first three parts are 40 tenant-minutes in less than nine
minutes, the last one takes four.

    off     without the log: nothing that is called a bound excludes the truth
    check   from the third minute on 95 % inside the likely range, frame rates within 3 points, and its cost
    auto    all inside proven bounds
    hider   with check: a tenant that rests around each sample is booked within 5 points after two minutes

Sums must be exact in every snapshot. From the environment: PARTS (such as `off,check`), SEED. With `$OUT`, the figures
are written there.
"""

import asyncio
import json
import os
import random
import sys
import time
import traceback
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])

from podgpu.agent.switch_log import SwitchLogs  # noqa: E402 - the path is set above
from podgpu.sources.switches.watcher import SwitchWatcher  # noqa: E402
from tests.gpu.looks import Looks  # noqa: E402
from tests.gpu.switching.listening import Check, Listening  # noqa: E402
from tests.gpu.tenants import LISTEN_LONGER, Sums, judged_by_residency, printed, watched  # noqa: E402
from tests.gpu.work import Tenant, at_work, booked  # noqa: E402
from tests.samples.replay import Verdict  # noqa: E402

SEED = int(os.environ.get("SEED", "0")) or time.time_ns() % 2**32
MARKS = {None: "    ", True: "ok  ", False: "FAIL"}
ENOUGH = 0.95
SETTLED = 3  # from this minute on, checks must have found the truth
MOST_MILLISECONDS = 2.0  # of CPU a second, in the reading process
RATES = (5, 10, 15, 20, 25, 30)
T = TypeVar("T")
HIDER = Tenant("paced-hider", "hider", 0.002, 0.022, 0.0)


def drawn(chance: random.Random) -> list[Tenant]:
    """One that is always at work, two at a frame rate, and two at random."""
    tenants = [Tenant("paced-0", chance.choice(["tensor", "mem"]), 0.5, 0.0, 0.0)]
    for number, kind in ((1, "infer"), (2, chance.choice(["tensor", "mem"]))):
        every = 1 / chance.choice(RATES)
        tenants.append(Tenant(f"paced-{number}", kind, chance.uniform(0.15, 0.3) * every, 0.0, 0.0, every))
    for number in (3, 4):
        burst, pause = 0.005 * 30 ** chance.random(), 0.01 * 20 ** chance.random()
        tenants.append(Tenant(f"paced-{number}", chance.choice(["tensor", "infer"]), burst, pause, 0.5))
    return tenants


@dataclass(frozen=True)
class Outcome:
    minutes: list[list[Verdict]]
    sums: Sums
    reader_ms: float  # of CPU a second
    found: list[str]  # what is said of each tenant's samples


def observed(tenants: list[Tenant], minutes: int, switches: str) -> Outcome:
    sums, watcher = Sums(), None if switches == "off" else SwitchWatcher()
    logs = SwitchLogs(watcher, always=False, checks_only=switches == "check") if watcher else None
    with at_work(*tenants, seed=SEED) as (loads, folder), Looks() as looks:
        listening = Listening(60 * minutes + LISTEN_LONGER, beside=True)
        cost = _Cost(watcher)
        seen, _ = asyncio.run(cost.around(watched(folder, sums, minutes, logs)))
        heard = listening.heard()
        verdicts = [
            list(judged_by_residency(minute, number, loads, heard, looks.windows))
            for number, minute in enumerate(seen, 1)
        ]
        sampling = [booked(seen[-1].card, load).sampling for load in loads]
    return Outcome(verdicts, sums, cost.milliseconds, [each.found if each else "-" for each in sampling])


class _Cost:
    """The CPU time of the reading process, until shortly before it ends."""

    def __init__(self, watcher: SwitchWatcher | None) -> None:
        self._watcher = watcher
        self.milliseconds = 0.0

    async def around(self, work: Coroutine[Any, Any, T]) -> T:
        began, task = time.monotonic(), asyncio.create_task(work)
        while not task.done():
            await asyncio.wait([task], timeout=1.0)
            pid = self._watcher.pid if self._watcher else None
            if pid and not task.done():
                self.milliseconds = _ran_ms(pid) / (time.monotonic() - began)
        return task.result()


def _ran_ms(pid: int) -> float:
    try:
        return sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e6
    except (OSError, ValueError):
        return 0.0


def judged(switches: str, minutes: int) -> Iterator[Check]:
    tenants = drawn(random.Random(SEED))
    outcome = observed(tenants, minutes, switches)
    every = [verdict for minute in outcome.minutes for verdict in minute]
    settled = [verdict for minute in outcome.minutes[SETTLED - 1 :] for verdict in minute]
    for verdict in every:
        printed(verdict)
    broken = [verdict.name for verdict in every if not verdict.is_possible]
    yield "bounds that exclude the truth", f"{len(broken)} of {len(every)} {broken}", not broken
    if switches == "check":
        inside = sum(verdict.is_inside for verdict in settled)
        yield "likely ranges that hold", f"{inside} of {len(settled)}", inside >= ENOUGH * len(settled)
        off = max(abs(100 * (each.booked - each.true)) for each in settled if "fps" in each.name)
        yield "frame rates are booked within", f"{off:.1f} points", off <= 3
        yield "samples", ", ".join(outcome.found), None
    if switches != "off":
        figure = f"{outcome.reader_ms:.2f} ms of CPU a second"
        yield "the reading process", figure, outcome.reader_ms <= MOST_MILLISECONDS if switches == "check" else None
    yield "sums", str(outcome.sums), outcome.sums.snapshots > 0 and not outcome.sums.off


def hidden() -> Iterator[Check]:
    outcome = observed([Tenant("paced-0", "tensor", 0.5, 0.0, 0.0), HIDER], 3, "check")
    for verdict in outcome.minutes[-1]:
        printed(verdict)
        off = abs(100 * (verdict.booked - verdict.true))
        yield verdict.name, f"off by {off:.1f} points", off <= 5
    yield "samples", ", ".join(outcome.found), None
    yield "sums", str(outcome.sums), outcome.sums.snapshots > 0 and not outcome.sums.off


def main() -> int:
    print(f"SEED={SEED}", flush=True)
    parts: dict[str, Callable[[], Iterator[Check]]] = {
        "off": partial(judged, "off", 2),
        "check": partial(judged, "check", 4),
        "auto": partial(judged, "auto", 2),
        "hider": hidden,
    }
    failed, began, rows = 0, time.monotonic(), []
    for part in os.environ.get("PARTS", "off,check,auto").split(","):
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
        (Path(os.environ["OUT"]) / "paced.json").write_text(json.dumps(rows))
    print(f"{failed} failed, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
