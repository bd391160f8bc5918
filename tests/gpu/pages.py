"""The pages of other systems from a real GPU: what they hold against nvidia-smi, and read back as a source.

Also what `podgpu doctor` and `podgpu snapshot` say on this machine. Needs PyTorch for the load; changes no setting.
"""
# ruff: noqa: E402 - the path is set before the imports

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from podgpu.views.dialects._dcgm.counters import DEFAULTS
from tests.gpu.check import Check, load, mebibytes, smi, told

PORT = 19777
URL = f"http://127.0.0.1:{PORT}"
LABELS = {"DCGM_FI_DRIVER_VERSION"}  # of the default counters, those that are labels


@contextmanager
def agent() -> Iterator[None]:
    command = [
        sys.executable,
        "-m",
        "podgpu",
        "agent",
        f"--web.listen-address=127.0.0.1:{PORT}",
        "--interval=1s",
    ]
    running = subprocess.Popen([*command, "--log.level=error"])
    try:
        time.sleep(20)  # let counters move and profiling settle
        yield
    finally:
        running.terminate()
        running.wait()


def fetched(path: str) -> str:
    with urllib.request.urlopen(URL + path, timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def values(page: str) -> dict[str, float]:
    """The first value of each family."""
    found: dict[str, float] = {}
    for line in page.splitlines():
        if line and not line.startswith("#"):
            found.setdefault(line.partition("{")[0], float(line.rpartition(" ")[2]))
    return found


# What nvidia-smi calls it, and how far apart the two may be a second later.
NEAR = {
    "FB_USED": ("memory.used", 1.0),
    "POWER_USAGE": ("power.draw", 30.0),
    "SM_CLOCK": ("clocks.sm", 60.0),
    "GPU_TEMP": ("temperature.gpu", 2.0),
}


def dcgm_page() -> list[Check]:
    theirs = [float(cell) for cell in smi("gpu", "memory.total", *(query for query, _ in NEAR.values()))[0]]
    ours = values(fetched("/metrics/dcgm"))
    missing = [name for name in DEFAULTS if name not in ours and name not in LABELS]
    given = len(DEFAULTS) - len(LABELS) - len(missing)
    memory = sum(ours[f"DCGM_FI_DEV_FB_{part}"] for part in ("USED", "FREE", "RESERVED"))
    active = ours["DCGM_FI_PROF_GR_ENGINE_ACTIVE"]
    checks = [
        ("dcgm: default counters", f"{given}, without {missing}", len(missing) <= 2),
        ("dcgm: used + free + reserved", f"{memory:.0f} / {theirs[0]:.0f}", abs(memory - theirs[0]) <= 2),
        ("dcgm: GR_ENGINE_ACTIVE", f"{active:.3f}", active > 0.9),
    ]
    for (name, (_, within)), other in zip(NEAR.items(), theirs[1:], strict=True):
        own = ours[f"DCGM_FI_DEV_{name}"]
        checks.append((f"dcgm: {name}", f"{own:.0f} / {other:.0f}", abs(own - other) <= within))
    return checks


def processes_page(pids: list[int]) -> list[Check]:
    theirs = {int(pid): int(memory) for pid, memory in smi("compute-apps", "pid", "used_memory")}
    lines = [line for line in fetched("/metrics/gpu-mem-monitor").splitlines() if not line.startswith("#")]
    ours = {
        int(line.partition('app_pid="')[2].partition('"')[0]): mebibytes(float(line.rpartition(" ")[2]) * 2**20)
        for line in lines
    }
    return [("gpu-mem-monitor, pid: MiB", f"{ours} / {theirs}", ours == theirs and set(pids) <= set(ours))]


def read_back() -> list[Check]:
    """Our own dcgm page, read as a source, gives the values that it was made from."""
    command = [sys.executable, "-m", "podgpu", "snapshot", "-o", "json", "--source=dcgm"]
    done = subprocess.run([*command, f"--dcgm.url={URL}/metrics/dcgm"], capture_output=True, check=False)
    ours, direct = json.loads(done.stdout), json.loads(fetched("/api/v1/snapshot"))
    (there,), (here,) = ours["cards"], direct["cards"]
    metrics = {reading["metric"] for reading in there["readings"]} & {reading["metric"] for reading in here["readings"]}
    return [
        ("read back: the card", there["gpu"]["uuid"], there["gpu"]["uuid"] == here["gpu"]["uuid"]),
        ("read back: values that both have", str(len(metrics)), len(metrics) >= 20),
    ]


def main() -> int:
    with load(8192, 1.0, 2048) as first, load(4096, 0.3, 1024) as second, agent():
        checks = told([*dcgm_page(), *processes_page([first.pid, second.pid]), *read_back()])
        for command in (["doctor", f"--url={URL}"], ["doctor"], ["snapshot"]):
            print(f"\n$ podgpu {' '.join(command)}", flush=True)
            subprocess.run([sys.executable, "-m", "podgpu", *command], check=False)
    return 0 if all(passed for _, _, passed in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
