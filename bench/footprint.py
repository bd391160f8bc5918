"""Measures what an agent costs its node: memory, CPU time, and the time to the first full page.

The node has 8 GPUs, 64 pods and 64 processes. The agent reads them from a kubelet's two sockets and a folder of process
files.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.attribution import cgroup, container_id, uid
from bench.figure import Figure
from bench.start import load_figures
from tests.agent.stage import write_proc
from tests.fakekubelet.kubelet import FakeKubelet, Reply, kubelet_root
from tests.fakekubelet.rig import given, pods_api, running_pod
from tests.fakenvml.build import build
from tests.fakenvml.fake_node import FakeNode, eight_gpu_node, environment, h200, h200_delays
from tests.ports import quiet_port

WARM_UP_SECONDS = 12.0
MEASURED_SECONDS = 30.0
MIB = 1024 * 1024
PODS = 64


class Machine(NamedTuple):
    """A node to run agents on."""

    library: dict[str, str]
    paths: tuple[str, ...]

    def start(self, port: int, *options: str) -> subprocess.Popen[bytes]:
        command = (sys.executable, "-m", "podgpu", "agent", f"--web.listen-address=127.0.0.1:{port}")
        return subprocess.Popen(
            [*command, *self.paths, *options],
            env={**os.environ, **self.library},
            stderr=subprocess.DEVNULL,
        )


@contextmanager
def machine(
    node: FakeNode, pods: int, pids: Collection[int] | None = None, proc: Path | None = None
) -> Iterator[Machine]:
    """Make one with a pod for each process of the node's GPUs, or for these. `proc` has what else there is."""
    with tempfile.TemporaryDirectory() as name, kubelet_root() as kubelet, _served(kubelet, pods):
        folder = Path(name)
        node.delays = h200_delays()
        node.write(folder / "script")
        proc = proc or folder / "proc"
        on_cards = (process.pid for gpu in node.gpus for process in gpu.processes)
        for number, pid in enumerate(pid for pid in on_cards if pids is None or pid in pids):
            write_proc(proc, pid, cgroup(number))
        library = environment(build(folder), folder / "script")
        yield Machine(library, (f"--path.kubelet={kubelet}", f"--path.procfs={proc}"))


def run() -> list[Figure]:
    with machine(eight_gpu_node(processes=PODS), PODS) as host:
        port = quiet_port()
        began = time.monotonic()
        agent = host.start(port)
        try:
            first = _first_pages(port, began)
            memory, busy = _observe(agent.pid, port)
            pods = page(port).count(b"podgpu_pod_info{")
        finally:
            agent.terminate()
            agent.wait()
    return [
        Figure("pods on the page", f"{pods}", f">= {PODS}", ok=pods >= PODS),
        Figure("memory of all processes (PSS)", f"{memory / MIB:.1f} MiB", "<= 72", ok=memory <= 72 * MIB),
        Figure("processor time a second", f"{busy * 1e3:.1f} ms", "<= 10", ok=busy <= 0.010),
        *_start(first, host.library),
    ]


def _start(first: dict[str, float], library: dict[str, str]) -> list[Figure]:
    """Say where the time goes until the first page. The sampler starts while the agent loads its own modules."""
    cards = first["cards' own numbers"]
    return [
        *load_figures(library),
        *(Figure(f"start: {title} after", f"{seconds:.2f} s") for title, seconds in first.items()),
        Figure("first page with the cards' own numbers after", f"{cards:.2f} s", "<= 0.5", ok=cards <= 0.5),
    ]


@contextmanager
def _served(root: Path, pods: int) -> Iterator[None]:
    """Run a kubelet with the pods in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    kubelet = FakeKubelet(root)
    answers = [given(f"{h200(pod % 8).uuid}::{pod // 8}".encode(), pod=f"pod-{pod}".encode()) for pod in range(pods)]
    kubelet.replies["/v1.PodResourcesLister/List"] = Reply(b"".join(answers))
    kubelet.replies |= pods_api(*map(_pod, range(pods)))
    asyncio.run_coroutine_threadsafe(kubelet.start(), loop).result()
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(kubelet.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def _pod(number: int) -> bytes:
    return running_pod("n", f"pod-{number}", uid(number), "c", container_id(number))


def _first_pages(port: int, began: float) -> dict[str, float]:
    """Return when each of these was first on the page. Some numbers of a GPU take two samples of its profiler."""
    signs = {
        "a page": (b"podgpu_build_info", 1),
        "cards' own numbers": (b"podgpu_gpu_power_watts{", 8),
        "profiling counters": (b"podgpu_gpu_sm_active_ratio{", 8),
        "pods": (b"podgpu_pod_info{", PODS),
    }
    found: dict[str, float] = {}
    while time.monotonic() - began < 30:
        text = page(port)
        for title, (sign, number) in signs.items():
            if text.count(sign) >= number:
                found.setdefault(title, time.monotonic() - began)
        if len(found) == len(signs):
            return found
        time.sleep(0.01)
    raise TimeoutError("no full page within 30 s")


def _observe(pid: int, port: int) -> tuple[int, float]:
    """Scrape every five seconds, as a store would, and measure the cost."""
    time.sleep(WARM_UP_SECONDS)
    before, began = _processor_seconds(pid), time.monotonic()
    while time.monotonic() - began < MEASURED_SECONDS:
        page(port)
        time.sleep(5)
    elapsed = time.monotonic() - began
    return memory(family(pid)), (_processor_seconds(pid) - before) / elapsed


def page(port: int) -> bytes:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            page: bytes = answer.read()
            return page
    except OSError:
        return b""


def family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(int(child) for child in children)]


def memory(pids: Sequence[int]) -> int:
    """The proportional set size: pages shared by two processes count once."""
    total = 0
    for each in pids:
        for line in Path(f"/proc/{each}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total


def _processor_seconds(pid: int) -> float:
    ticks = 0
    for each in family(pid):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
