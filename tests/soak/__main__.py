"""`make soak`: an agent at the shortest interval on a node that keeps changing, checked snapshot by snapshot."""

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fakenvml.build import build
from tests.soak.machine import cgroup_root
from tests.soak.report import table, verdict
from tests.soak.soak import soak

LOG = Path("build/soak.log")  # of the agent


def main(seconds: float, seed: int) -> int:
    root = cgroup_root()
    if root is None:
        print("make soak needs root and a cgroup hierarchy it can write to")
        return 2
    with TemporaryDirectory(prefix="soak-") as folder:
        library = build(Path(folder) / "library")
        outcome = asyncio.run(soak(seconds, seed, Path(folder), root, library))
    print(table(outcome))
    LOG.parent.mkdir(exist_ok=True)
    LOG.write_text(outcome.log)
    wrong = verdict(outcome)
    print("\n".join(wrong) or "flat, monotone and balanced")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1))
