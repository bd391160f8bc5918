"""Samples and log of a real card agree on tenants that keep no time with the samples."""

from typing import Any

import pytest

from podgpu.ledger.cycle import Party, SpotCheck
from podgpu.ledger.residency import Evidence, compared
from podgpu.ledger.spot_checks import judged, shares
from tests.samples.switches import by_looks, recording, slices

RECORDED: dict[str, Any] = recording()
SECOND = 1_000_000_000
DELAY = SECOND // 4  # of the log


def checks(recorded: dict[str, Any], cycle: int) -> list[SpotCheck]:
    """As a log that is read throughout gives them, cycle by cycle."""
    log, windows = slices(recorded), by_looks(recorded)
    parties: dict[int, Party] = {pid: f"tenant {number}" for number, pid in enumerate(recorded["pids"])}
    samples = [sample for _, answer in recorded["process"] for sample in answer]
    found = []
    for begin in range(log[0].begin_ns, log[-1].end_ns - cycle, cycle):
        named: dict[Party, float] = {}
        for pid, stamp, busy, _ in samples:
            if begin < stamp * 1000 <= begin + cycle:
                named[parties[pid]] = named.get(parties[pid], 0.0) + busy
        inside = tuple(
            window for window in windows if begin <= window.begin_ns and window.end_ns <= begin + cycle - DELAY
        )
        if check := compared(Evidence(windows=inside, slices=log), parties, shares(named)):
            found.append(check)
    return found


@pytest.mark.parametrize("name", RECORDED)
def test_samples_of_tenants_without_a_rhythm_represent_them(name: str) -> None:
    found = judged(checks(RECORDED[name], SECOND))
    assert len(found) == len(RECORDED[name]["pids"])
    assert {sampling.found for sampling in found.values()} == {"represented"}
