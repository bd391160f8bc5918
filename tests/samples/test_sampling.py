"""Samples and log of a real card agree on tenants that do not hide, however they work."""

from typing import Any

import pytest

from podgpu.ledger.cycle import Comparison, Party
from podgpu.ledger.residency import DOUBT, Evidence, compared, tallies
from tests.samples.switches import by_looks, recording, slices

RECORDED: dict[str, Any] = recording()
SECOND = 1_000_000_000
DELAY = SECOND // 4  # of the log


def comparisons(recorded: dict[str, Any], cycle: int) -> list[dict[Party, Comparison]]:
    """As in checks that come one after the other, each of one cycle."""
    log, windows = slices(recorded), by_looks(recorded)
    parties = {pid: f"tenant {number}" for number, pid in enumerate(recorded["pids"])}
    samples = [sample for _, answer in recorded["process"] for sample in answer]
    found = []
    for begin in range(log[0].begin_ns, log[-1].end_ns - cycle, cycle):
        named: dict[Party, int] = {}
        for pid, stamp, busy, _ in samples:
            if begin < stamp * 1000 <= begin + cycle:
                named[parties[pid]] = named.get(parties[pid], 0) + 2000 * busy
        inside = tuple(
            window for window in windows if begin <= window.begin_ns and window.end_ns <= begin + cycle - DELAY
        )
        found.append(compared(Evidence(windows=inside, slices=log), parties, named, cycle // 1000))
    return found


@pytest.mark.parametrize("seconds", [2, 5])
@pytest.mark.parametrize("name", RECORDED)
def test_nobody_is_suspected(name: str, seconds: int) -> None:
    cycles = comparisons(RECORDED[name], seconds * SECOND)
    assert sum(cycle["tenant 0"].samples for cycle in cycles) > 50
    for part in ([cycles], [[cycle] for cycle in cycles]):
        for some in part:
            assert all(tally.evidence < DOUBT for tally in tallies(some).values())
