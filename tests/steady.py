"""Run tests while pytest and the processes that it starts are stopped at random moments, as on a busy machine.

A test that fails here and passes alone assumes that two things happen close together, or in an order that nothing
ensures. The exceptions are tests that stop a process themselves: this program may let that process go on.

With `--at` nothing is stopped, but the tests begin at that time, by the time zone of TZ. Programs in Go keep the
machine's clock, and so does what a test starts without its own environment.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from tests.faults.props.clock import Clock

LEAST_SECONDS, MOST_SECONDS = 0.05, 3.0  # that a process is stopped
GAP_SECONDS = 0.4  # until the next one is, on average


def _stat(pid: int) -> list[str]:
    """The fields of a process after its name: its state, its parent and so on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def family(pid: int) -> list[int]:
    """A process and those that descend from it."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(folder.name)] = int(_stat(int(folder.name))[1])
    found = [pid]
    for ancestor in found:
        found += sorted(child for child, parent in parents.items() if parent == ancestor)
    return found


def pause(pid: int, seconds: float) -> None:
    """Stop a process for a while, unless it is stopped already or has ended."""
    with suppress(OSError):
        if _stat(pid)[0] in "TtZ":
            return
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            os.kill(pid, signal.SIGCONT)


def disturb(tests: subprocess.Popen[bytes], chance: random.Random) -> None:
    """Stop one process after another until the tests have ended."""
    while tests.poll() is None:
        time.sleep(chance.expovariate(1 / GAP_SECONDS))
        seconds = LEAST_SECONDS * (MOST_SECONDS / LEAST_SECONDS) ** chance.random()
        # Every second time it is pytest itself, in which servers, clients and event loops run.
        pause(chance.choice([tests.pid, chance.choice(family(tests.pid))]), seconds)


def shuffled(names: list[str], chance: random.Random) -> list[str]:
    """The test files in another order, with the files of a folder in its place."""
    files = [
        str(path)
        for name in names
        for path in (sorted(Path(name).rglob("test_*.py")) if Path(name).is_dir() else [name])
    ]
    return chance.sample(files, len(files))


def passes(names: list[str], options: list[str], seed: int, at: datetime | None, folder: Path) -> bool:
    """Run the tests once, and say whether all passed."""
    chance = random.Random(seed)
    command = [sys.executable, "-m", "pytest", "-q", *options, *shuffled(names, chance)]
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    if at:
        clock = Clock(folder)
        clock.set(wall=at.timestamp() - time.time())
        environment |= clock.variables
    with subprocess.Popen(command, env=environment) as tests:
        if at is None:
            disturb(tests, chance)
    print(f"seed {seed}: {'passed' if tests.returncode == 0 else f'exit status {tests.returncode}'}", flush=True)
    return tests.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--at", type=datetime.fromisoformat, help="for example 2027-12-31T23:59:30")
    parser.add_argument("tests", nargs="+", help="files, folders, or ids of tests")
    arguments, options = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        failed = sum(
            not passes(arguments.tests, options, seed, arguments.at, Path(folder))
            for seed in range(arguments.seed, arguments.seed + arguments.runs)
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
