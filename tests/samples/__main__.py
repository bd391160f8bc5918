"""`python -m tests.samples FILE.json.gz …`: true share, booked share and band of each tenant, at 1 s and 5 s cycles.

Each line ends with what the true share is by: kernels done or, where tenants ran different kernels, kernel time.
"""

import sys
from pathlib import Path

from tests.samples.replay import Verdict, kernel_seconds, recording, verdicts

CYCLES = (1.0, 5.0)


def main(paths: list[str]) -> int:
    every: list[Verdict] = []
    for path in paths:
        sets = recording(Path(path))
        seconds = kernel_seconds(sets.values())
        for name, recorded in sets.items():
            for cycle in CYCLES:
                for verdict in verdicts(name, recorded, cycle, seconds):
                    every.append(verdict)
                    print(_line(verdict, cycle))
    inside = sum(verdict.is_inside for verdict in every)
    print(f"inside {inside} of {len(every)}")
    return 0 if every and inside == len(every) else 1


def _line(verdict: Verdict, cycle: float) -> str:
    true, booked, least, most = (100 * part for part in (verdict.true, verdict.booked, verdict.least, verdict.most))
    figures = f"true {true:5.1f}  booked {booked:5.1f}  band {least:5.1f}-{most:5.1f}"
    return (
        f"{verdict.name:<24} {cycle:g} s  {figures}  {'inside ' if verdict.is_inside else 'OUTSIDE'}  by {verdict.by}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
