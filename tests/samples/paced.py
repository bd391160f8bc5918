"""Recordings of tenants that keep a frame rate: samples of a real card, and who was on it by the log read beside them.

The truth is residency in percent of the card, tenant by tenant, for each minute; a range where the card rested.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from podgpu.ledger.band import Period
from tests.samples.replay import Verdict, look_cycles, looks_of, recording, verdict

FOLDER = Path(__file__).parent / "recorded"
MINUTE = 60.0

Truth = tuple[float, float]
TRUTHS: dict[str, list[list[Truth]]] = {
    "h200-paced-30-5.json.gz": [
        [(71.7, 71.7), (11.4, 11.4), (11.4, 11.4)],
        [(71.9, 71.9), (10.9, 10.9), (11.4, 11.4)],
    ],
    "h200-paced-10-25.json.gz": [
        [(87.0, 87.0), (5.0, 5.0), (5.9, 5.9)],
        [(87.1, 87.1), (5.0, 5.0), (5.9, 5.9)],
    ],
    "h200-paced-30.json.gz": [[(85.2, 89.6), (0.4, 4.8)]],
}


def paced_recordings() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in TRUTHS:
        (recorded,) = recording(FOLDER / file).values()
        yield file, recorded


def paced_verdicts(file: str, recorded: dict[str, Any], cycle: float) -> Iterator[Verdict]:
    """Judge each minute of a recording."""
    looks = list(looks_of(recorded))
    for number, truths in enumerate(TRUTHS[file]):
        begin = looks[0].at + number * MINUTE
        period = Period()
        for sheet in look_cycles(recorded, [look for look in looks if begin <= look.at < begin + MINUTE], cycle):
            period.add(sheet)
        bands = {party.container.pod: band for party, band in period.bands().items() if not isinstance(party, str)}
        for tenant, (low, high) in enumerate(truths):
            kind, work, every, _ = recorded["tenants"][tenant]
            pace = f"{1000 * work:.0f} ms at {1 / every:.0f} fps" if every else "always"
            found = verdict(f"{kind} {pace}, minute {number + 1}", (low + high) / 200, bands[f"tenant-{tenant}"])
            yield replace(found, true_range=(low / 100, high / 100), by="residency")
