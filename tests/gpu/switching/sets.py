"""Fresh tenants: residency, lost records, and bands by each kind of window beside the truth."""

import gzip
import json
import os
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import pynvml

from podgpu.sources.nvml.window_split import AHEAD, TENTH
from tests.gpu.looks import Looks
from tests.gpu.switching.listening import Check, Heard, Listening
from tests.gpu.switching.pulsing import Pulsing
from tests.gpu.tenants import truth
from tests.gpu.work import Tenant, at_work
from tests.samples.lag import measured
from tests.samples.replay import verdicts
from tests.samples.switches import Finding, by_looks, by_tenths, findings

SECONDS = float(os.environ.get("SECONDS", "11"))

BUSY, BURSTY = ("tensor", 0.5, 0.0, 0.0), ("tensor", 0.03, 0.07, 0.5)
COPIES, SMALL = ("mem", 0.02, 0.05, 0.5), ("infer", 0.01, 0.03, 0.5)
SETS: dict[str, list[tuple[str, float, float, float]]] = {
    "busy+bursty": [BUSY, BURSTY],
    "long+short, pauses": [("tensor", 0.15, 0.35, 0.5), ("tensor", 0.01, 0.04, 0.5)],
    "two bursty, pauses": [BURSTY, ("tensor", 0.01, 0.09, 0.5)],
    "copies+small, pauses": [COPIES, SMALL],
    "busy+copies+small": [BUSY, COPIES, SMALL],
    "four": [BUSY, ("tensor", 0.05, 0.1, 0.5), COPIES, SMALL],
}


def checked_sets() -> Iterator[Check]:
    recordings: dict[str, Any] = {}
    for name, kinds in SETS.items():
        try:
            yield from _checked(name, kinds, recordings)
        except Exception as error:
            traceback.print_exc()
            yield f"set {name}", repr(error)[:200], False
    if "OUT" in os.environ:
        with gzip.open(Path(os.environ["OUT"]) / "switches.json.gz", "wt") as file:
            json.dump(recordings, file)


def _checked(name: str, kinds: list[tuple[str, float, float, float]], recordings: dict[str, Any]) -> Iterator[Check]:
    tenants = [Tenant(f"{kind[0]}-{number}", *kind) for number, kind in enumerate(kinds)]
    with at_work(*tenants) as (loads, _):
        with Looks() as looks, Pulsing() as pulsing:
            heard = Listening(SECONDS).heard()
            windows = _samples(looks.answers[0][0])
        time.sleep(1)  # for the last bursts to be over
        recorded = truth(loads, looks.answers[0][0], looks.answers[-1][0])
        recorded |= {"pids": [load.process.pid for load in loads], "process": looks.answers}
        recorded["gpm"] = [
            (sample.begin_ns / 1e9, sample.end_ns / 1e9, 100 * sample.busy) for sample in pulsing.glimpses
        ]
    slices = [(part.pid, part.begin_ns, part.end_ns) for part in heard.slices]
    recordings[name] = recorded | {"slices": slices, "samples": windows}
    yield from _sound(name, heard)
    yield from _banded(name, recorded, heard)
    yield from _placed(name, recorded)
    yield f"{name}: GPM ten times a second", f"{pulsing.cpu_ms:.1f} ms/s of CPU", None
    same, all_of_them = _agreeing(recorded, windows)
    yield f"{name}: windows in one call", f"{same} of {all_of_them} looks are in them", same == all_of_them


def _sound(name: str, heard: Heard) -> Iterator[Check]:
    lost = heard.counts["lost_records"] + heard.counts["overflow"]
    figures = f"{lost} of {2 * heard.switches}, odd {dict(heard.counts)}"
    yield f"{name}: records lost", figures, not lost and not heard.lost
    off = (heard.resident_ns + heard.switching_ns) / heard.covered_ns - 1
    figures = f"{100 + 100 * off:.4f} % of the time"
    yield f"{name}: residency and switching", figures, -0.01 < off <= 0
    share, rate = 100 * heard.switching_ns / heard.covered_ns, heard.records_per_second
    figures = f"{share:.1f} % of the card, {rate:.0f} records/s, {heard.cpu_ms:.1f} ms/s of CPU"
    yield f"{name}: switching", figures, heard.cpu_ms <= 5 * max(1, rate / 2000)


def _banded(name: str, recorded: dict[str, Any], heard: Heard) -> Iterator[Check]:
    tenths, looks = by_tenths(recorded), by_looks(recorded)
    fine, coarse = (findings(recorded, heard.slices, windows) for windows in (tenths, looks))
    by_look = list(verdicts(name, recorded, 1.0))
    busy = mean(look[2] for _, answer in recorded["process"] for look in answer) / 100
    for number, (tenth, whole, look) in enumerate(zip(fine, coarse, by_look, strict=True)):
        least, booked, most = (100 * part / busy for part in (look.least, look.booked, look.most))
        figures = (
            f"true {100 * tenth.true:5.1f} | tenths {_shown(tenth)} | 200 ms {_shown(whole)} | "
            f"looks {booked:5.1f} ({least:.0f}-{most:.0f})"
        )
        is_inside = all(found.least <= found.booked <= found.most for found in (tenth, whole))
        yield f"{name}: tenant {number} {recorded['tenants'][number][0]}", figures, is_inside
    total = sum(finding.booked for finding in fine)
    halves = sum(window.end_ns - window.begin_ns == TENTH for window in tenths)
    figures = f"{100 * total:.4f} %, busy {100 * busy:.0f} %, {halves} halves of {len(tenths)} windows"
    yield f"{name}: sum of the bookings", figures, abs(total - 1) < 1e-4


def _shown(finding: Finding) -> str:
    mark = " " if finding.least - 1e-6 <= finding.true <= finding.most + 1e-6 else "!"
    return f"{100 * finding.booked:5.1f} ({100 * finding.least:.1f}-{100 * finding.most:.1f}){mark}"


def _placed(name: str, recorded: dict[str, Any]) -> Iterator[Check]:
    """Where GPM's tenths lie. A card that is always busy does not show it."""
    lag = measured(recorded)
    figures = (
        f"{lag.ahead_ms:.0f} ms before the driver's windows (taken for {AHEAD / 1e6:.0f}), error "
        f"{100 * lag.error:.1f} % (a constant lag: {100 * lag.constant_error:.1f}), delays {lag.delays_ms} ms"
    )
    tells = lag.constant_error > 0.03 and lag.error < lag.constant_error / 2
    yield f"{name}: GPM's tenths end", figures, abs(lag.ahead_ms - AHEAD / 1e6) <= 4 if tells else None


def _samples(since: float) -> dict[int, int]:
    """Every window of the driver in one call, as the sampler reads them."""
    card = pynvml.nvmlDeviceGetHandleByIndex(0)
    _, found = pynvml.nvmlDeviceGetSamples(card, pynvml.NVML_GPU_UTILIZATION_SAMPLES, int(since * 1e6))
    return {sample.timeStamp: sample.sampleValue.uiVal for sample in found}


def _agreeing(recorded: dict[str, Any], windows: dict[int, int]) -> tuple[int, int]:
    oldest, stamps = min(windows, default=0), sorted(windows)
    looks = {look[1]: look[2] for _, answer in recorded["process"] for look in answer if look[1] >= oldest}
    near = [min(stamps, key=lambda stamp, at=at: abs(stamp - at)) for at in looks] if stamps else []  # type: ignore[misc]
    same = sum(windows[stamp] == busy for stamp, busy in zip(near, looks.values(), strict=False))
    return same, len(looks)
