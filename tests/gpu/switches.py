"""Checks the driver's log of context switches on a machine with a real GPU, and prints one table in under 8 minutes.

Needs root, cgroup v2, PyTorch for the tenants and podgpu's dependencies on PYTHONPATH. Changes no setting of the card.
A part that fails does not stop the others. With `$OUT`, the tenants' recordings are written there. From the
environment: PARTS (such as `open,sets`), BUDGET in seconds for all of it, SECONDS of each set, PAIRS, KILLS.

    open    the log opens, and how long that takes
    sets    fresh tenants: residency, lost records, bands by tenths, by windows of 200 ms and by samples, beside the
            truth; where GPM's tenths lie
    mps     whose the slices of MPS clients are
    cost    what a tenant alone and two in contention lose while the log is read, pair by pair, in the time that is left

Only if named, in another four minutes:

    agent   a minute of a whole agent with --switches=auto: method, band, sums, release
    rights  as root without capabilities: root's tenants are exact, another user's hidden
    kills   start, kill -9 and restart while tenants run: none fails, no descriptor stays
"""

import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])

from podgpu.sources.child import sees_node  # noqa: E402 - the path is set above
from tests.gpu.switching.harm import checked_kills, checked_rights  # noqa: E402
from tests.gpu.switching.listening import Check, Listening  # noqa: E402
from tests.gpu.switching.resident import checked_agent  # noqa: E402
from tests.gpu.switching.served import checked_mps  # noqa: E402
from tests.gpu.switching.sets import checked_sets  # noqa: E402
from tests.gpu.switching.slowdown import checked_cost  # noqa: E402

BUDGET = float(os.environ.get("BUDGET", "460"))
USUAL = "open,sets,mps,cost"
MARKS = {None: "    ", True: "ok  ", False: "FAIL"}


def checked_open() -> Iterator[Check]:
    heard = Listening(2).heard()
    yield "PID namespace is the node's", str(sees_node()), None
    yield "the log opens", f"in {heard.open_ms:.0f} ms", True
    yield "CPU of a reader of a quiet log", f"{heard.cpu_ms:.1f} ms/s", heard.cpu_ms <= 5


def kernel_complaints() -> str:
    done = subprocess.run(["dmesg"], capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if "NVRM" in line or "Xid" in line or "BUG:" in line]
    return " | ".join(lines[-3:]) or ("none" if not done.returncode else "cannot be read")


def main() -> int:
    failed, began = 0, time.monotonic()
    parts: dict[str, Callable[[], Iterator[Check]]] = {
        "open": checked_open,
        "sets": checked_sets,
        "mps": checked_mps,
        "agent": checked_agent,
        "cost": partial(checked_cost, began + BUDGET),
        "rights": checked_rights,
        "kills": checked_kills,
    }
    for part in os.environ.get("PARTS", USUAL).split(","):
        try:
            for name, figure, passed in parts[part]():
                failed += passed is False
                print(f"{MARKS[passed]} {part:<6} {name}: {figure}", flush=True)
        except Exception as error:
            traceback.print_exc()
            failed += 1
            print(f"FAIL {part:<6} {error!r}", flush=True)
        print(f"     {part:<6} over after {time.monotonic() - began:.0f} s", flush=True)
    print(f"kernel: {kernel_complaints()}")
    print(f"{failed} failed, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
