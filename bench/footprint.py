"""What an agent costs its node: memory, processor time, and the time to the first full page."""

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from bench.row import Row
from tests.agent.rig import free_port
from tests.fakenvml.build import build
from tests.fakenvml.node import eight_gpu_node, environment, h200_delays

WARM_UP_SECONDS = 12.0
MEASURED_SECONDS = 30.0
MIB = 1024 * 1024


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        node = eight_gpu_node(processes=64)
        node.delays = h200_delays()
        node.write(folder / "script")
        fake = environment(build(folder), folder / "script")
        port = free_port()
        began = time.monotonic()
        agent = subprocess.Popen(
            [sys.executable, "-m", "podgpu", "agent", f"--web.listen-address=127.0.0.1:{port}"],
            env={**os.environ, **fake},
            stderr=subprocess.DEVNULL,
        )
        try:
            first_page = _first_full_page(port, began)
            memory, busy = _observe(agent.pid, port)
        finally:
            agent.terminate()
            agent.wait()
    return [
        Row("memory of all processes (PSS)", f"{memory / MIB:.1f} MiB", "<= 72", ok=memory <= 72 * MIB),
        Row("processor time a second", f"{busy * 1e3:.1f} ms", "<= 10", ok=busy <= 0.010),
        Row("first full page after", f"{first_page:.2f} s", "<= 1", ok=first_page <= 1.0),
    ]


def _first_full_page(port: int, began: float) -> float:
    while time.monotonic() - began < 30:
        if _page(port).count(b"podgpu_gpu_sm_active_ratio{") == 8:
            return time.monotonic() - began
        time.sleep(0.01)
    raise TimeoutError("no full page within 30 s")


def _observe(pid: int, port: int) -> tuple[int, float]:
    """Scrape every five seconds, as a store would, and see what that costs."""
    time.sleep(WARM_UP_SECONDS)
    before, began = _processor_seconds(pid), time.monotonic()
    while time.monotonic() - began < MEASURED_SECONDS:
        _page(port)
        time.sleep(5)
    elapsed = time.monotonic() - began
    return _memory(pid), (_processor_seconds(pid) - before) / elapsed


def _page(port: int) -> bytes:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            page: bytes = answer.read()
            return page
    except OSError:
        return b""


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(int(child) for child in children)]


def _memory(pid: int) -> int:
    """The proportional set size: pages shared by two processes count once."""
    total = 0
    for each in _family(pid):
        for line in Path(f"/proc/{each}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total


def _processor_seconds(pid: int) -> float:
    ticks = 0
    for each in _family(pid):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
