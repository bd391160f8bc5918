"""Replays the driver's log of context switches through the ledger, recorded together with what tenants really did.

A recording has the keys of those in `replay`, and: `gpm`, a mean over each tenth of a second (from, to, busy percent);
`contexts`, the tenants' context ids; `switches`, the log: START and END in turn, as steps of 32 ns from `begin_ns`, and
`whose` each pair is. No record was lost.
"""

import json
import lzma
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from podgpu.ledger.band import Period
from podgpu.ledger.book import book
from podgpu.ledger.cycle import CycleBooks, Interval
from podgpu.ledger.residency import Evidence
from podgpu.model import BusyWindow, ContainerRef, Device, Holder, Process, Slice, Span, SwitchLog
from podgpu.model.card import Band
from podgpu.sources.nvml.window_split import BusySample, WindowSplitter
from tests.samples.replay import ABLE, CARD, true_shares

RECORDED = Path(__file__).parent / "recorded" / "h200-switches.json.xz"
CYCLE_NS = 1_000_000_000


@dataclass(frozen=True)
class Finding:
    """One tenant: shares of the card's busy time, 0 to 1. `true` is by kernels done, which need no switching."""

    true: float
    booked: float
    least: float
    most: float
    resident: float  # of the whole time


def recording() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lzma.decompress(RECORDED.read_bytes()))
    return found


def slices(recorded: dict[str, Any]) -> tuple[Slice, ...]:
    log = recorded["switches"]
    stamps = [log["begin_ns"] + log["unit_ns"] * at for at in accumulate(log["deltas"])]
    return tuple(
        Slice(recorded["pids"][int(who)], begin, end)
        for who, begin, end in zip(log["whose"], stamps[::2], stamps[1::2], strict=False)
    )


def glimpsed(recorded: dict[str, Any]) -> list[BusySample]:
    return [BusySample(round(begin * 1e9), round(end * 1e9), busy / 100) for begin, end, busy in recorded["gpm"][1:]]


def by_tenths(recorded: dict[str, Any], cycle_ns: int = CYCLE_NS) -> list[BusyWindow]:
    """The windows that the sampler makes of the driver's and GPM's, cycle by cycle."""
    cutter, windows, found = WindowSplitter(), by_looks(recorded), list[BusyWindow]()
    glimpses = glimpsed(recorded)
    begin, end = windows[0].begin_ns, max(windows[-1].end_ns, glimpses[-1].end_ns)
    for now in range(begin + cycle_ns, end + 2 * cycle_ns, cycle_ns):
        fresh = [window for window in windows if now - cycle_ns < window.end_ns <= now]
        found += cutter.split(fresh, [glimpse for glimpse in glimpses if now - cycle_ns < glimpse.end_ns <= now])
    return found


def by_looks(recorded: dict[str, Any]) -> list[BusyWindow]:
    return [
        _window(stamp / 1e6 - 0.2, stamp / 1e6, busy / 100)
        for _, answer in recorded["process"][1:]
        for _, stamp, busy, _ in answer
    ]


def by_cycle(recorded: dict[str, Any], seconds: float) -> list[BusyWindow]:
    """Windows as long as a cycle."""
    fine, found = by_looks(recorded), []
    for begin in range(fine[0].begin_ns, fine[-1].end_ns, round(seconds * 1e9)):
        inside = [window for window in fine if begin <= window.begin_ns < begin + seconds * 1e9]
        if inside[-1].end_ns - inside[0].begin_ns > 0.8e9 * seconds:
            busy = sum(window.busy_ns for window in inside)
            found.append(BusyWindow(inside[0].begin_ns, inside[-1].end_ns, busy))
    return found


def _window(begin: float, end: float, busy: float) -> BusyWindow:
    return BusyWindow(round(begin * 1e9), round(end * 1e9), round(busy * (end - begin) * 1e9))


def sheets(
    recorded: dict[str, Any],
    log: Sequence[Slice],
    windows: Sequence[BusyWindow],
    blind: Sequence[Span] = (),
) -> Iterator[CycleBooks]:
    """Book the windows in cycles of a second, or each on its own if it is longer."""
    whole = [window for window in windows if window.begin_ns >= log[0].begin_ns and window.end_ns <= log[-1].end_ns]
    cycle: list[BusyWindow] = []
    for window in whole:
        cycle.append(window)
        if window.end_ns - cycle[0].begin_ns >= CYCLE_NS or window is whole[-1]:
            yield _booked(recorded, log, cycle, blind)
            cycle = []


def _booked(
    recorded: dict[str, Any], log: Sequence[Slice], windows: Sequence[BusyWindow], blind: Sequence[Span]
) -> CycleBooks:
    begin, end = windows[0].begin_ns, windows[-1].end_ns
    near = tuple(piece for piece in log if piece.end_ns > begin and piece.begin_ns < end)
    device = Device(
        gpu=CARD,
        ability=ABLE,
        processes=tuple(Process(pid=pid, kinds=("compute",), sm_busy_us=1) for pid in recorded["pids"]),
    )
    cut = tuple(Slice(piece.pid, max(piece.begin_ns, begin), min(piece.end_ns, end)) for piece in near)
    evidence = Evidence(
        windows=tuple(windows),
        slices=near,
        blind=tuple(blind),
        log=SwitchLog(begin_ns=begin, end_ns=end, slices=cut, switches=len(cut)),
    )
    interval = Interval(
        elapsed_us=(end - begin) // 1000,
        busy_us=sum(window.busy_ns for window in windows) // 1000,
        energy_mj=10_000,
    )
    holders = {pid: _holder(pid, number) for number, pid in enumerate(recorded["pids"])}
    return book(device, interval, (), holders, (), evidence)


def _holder(pid: int, number: int) -> Holder:
    return Holder(pid=pid, kind="pod", container=ContainerRef("looks", f"tenant-{number}", "main", f"{number}"))


def findings(recorded: dict[str, Any], log: Sequence[Slice], windows: Sequence[BusyWindow]) -> list[Finding]:
    period, resident = Period(), [0] * len(recorded["pids"])
    for sheet in sheets(recorded, log, windows):
        period.add(sheet)
        for party, entry in sheet.bookings.items():
            if not isinstance(party, str):
                resident[int(party.container.pod_uid)] += entry.resident_us or 0
    bands: dict[str, Band] = {
        party.container.pod_uid: band for party, band in period.bands().items() if not isinstance(party, str)
    }
    busy = period.whole().booked_us
    return [
        Finding(
            true=share,
            booked=bands[f"{number}"].booked_us / busy,
            least=bands[f"{number}"].least_us / busy,
            most=bands[f"{number}"].most_us / busy,
            resident=resident[number] / period.elapsed_us,
        )
        for number, share in enumerate(true_shares(recorded))
    ]
