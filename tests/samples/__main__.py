"""`python -m tests.samples [FILE.json.gz …]`: true share, booked share, likely range and bounds of each tenant.

Without a file, all recordings of the repository, at cycles of 1 s and 5 s. Each line ends with what the true share is
by: kernels done, kernel time where tenants ran different kernels, or residency by the log of context switches. Fails
if anything that is called a bound excludes the truth.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.samples.paced import FOLDER, paced_recordings, paced_verdicts
from tests.samples.replay import Verdict, kernel_seconds, recording, verdicts

CYCLES = (1.0, 5.0)
FREE = ("h200.json.gz", "h200-fresh.json.gz")  # of tenants that keep no time with the samples


def judged(paths: list[Path], cycle: float) -> Iterator[Verdict]:
    for path in paths:
        sets = recording(path)
        seconds = kernel_seconds(sets.values())
        for name, recorded in sets.items():
            yield from verdicts(name, recorded, cycle, seconds)


def paced(cycle: float) -> Iterator[Verdict]:
    for file, recorded in paced_recordings():
        yield from paced_verdicts(file, recorded, cycle)


def main(paths: list[str]) -> int:
    every: list[Verdict] = []
    for cycle in CYCLES:
        found = list(judged([Path(path) for path in paths] or [FOLDER / name for name in FREE], cycle))
        found += [] if paths else list(paced(cycle))
        for verdict in found:
            print(_line(verdict, cycle))
        every += found
    broken = sum(not verdict.is_possible for verdict in every)
    likely = sum(verdict.is_inside for verdict in every)
    print(f"{broken} bounds broken; {likely} of {len(every)} inside the likely range")
    return 0 if every and not broken else 1


def _line(verdict: Verdict, cycle: float) -> str:
    true, booked, least, most = (100 * part for part in (verdict.true, verdict.booked, verdict.least, verdict.most))
    low, high = (100 * part for part in verdict.proven)
    figures = f"true {true:5.1f}  booked {booked:5.1f}  likely {least:5.1f}-{most:5.1f}  bounds {low:5.1f}-{high:5.1f}"
    word = ("likely" if verdict.is_inside else "unlikely") if verdict.is_possible else "BROKEN"
    return f"{verdict.name:<36} {cycle:g} s  {figures}  {word:<8}  by {verdict.by}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
