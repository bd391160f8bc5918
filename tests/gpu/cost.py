"""What podgpu costs a node with a real GPU: each process by itself, beside the floor and beside nvitop-exporter.

Three pods work on the card, in the cgroups of made-up pods (needs root and cgroup v2), and a kubelet's socket lists
them. The floor is Python with the driver's library loaded, making the bare calls of a cycle. One after another, so
that nobody profits from what the driver has just looked up for somebody else.
"""

import asyncio
import compileall
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])

from tests.gpu.pods import MadeUpPod  # noqa: E402 - the path is set above

SECONDS = float(os.environ.get("SECONDS_EACH", "40"))
WARM_UP = 8.0
SCRAPES = 400
LOAD = ROOT / "tests" / "gpu" / "load.py"
DUTIES = (1.0, 0.3, 0.1)
PORTS = {"podgpu": 19499, "nvitop-exporter": 19498}

# The bare calls of a cycle. With an argument it turns the profiling counters into values, too, as podgpu does.
FLOOR = """
import sys
import time
import pynvml as nvml

nvml.nvmlInit()
card = nvml.nvmlDeviceGetHandleByIndex(0)
samples = [nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()]
nvml.nvmlGpmSampleGet(card, samples[0])
request = nvml.c_nvmlGpmMetricsGet_t(version=nvml.NVML_GPM_METRICS_GET_VERSION, numMetrics=1)
request.metrics[0].metricId = nvml.NVML_GPM_METRIC_SM_UTIL
while True:
    began = time.monotonic()
    nvml.nvmlDeviceGetMemoryInfo(card, nvml.nvmlMemory_v2)
    nvml.nvmlDeviceGetUtilizationRates(card)
    nvml.nvmlDeviceGetPowerUsage(card)
    nvml.nvmlDeviceGetTemperature(card, nvml.NVML_TEMPERATURE_GPU)
    nvml.nvmlDeviceGetClockInfo(card, nvml.NVML_CLOCK_SM)
    nvml.nvmlDeviceGetComputeRunningProcesses_v3(card)
    nvml.nvmlDeviceGetTotalEnergyConsumption(card)
    try:
        nvml.nvmlDeviceGetProcessUtilization(card, int(time.time() * 1e6) - 1_000_000)
    except nvml.NVMLError:
        pass
    nvml.nvmlGpmSampleGet(card, samples[1])
    if sys.argv[1:]:
        request.sample1, request.sample2 = samples
        nvml.nvmlGpmMetricsGet(request)
    samples.reverse()
    time.sleep(max(0.0, began + 1 - time.monotonic()))
"""


@dataclass(frozen=True)
class Cost:
    """Milliseconds of CPU time a second, alone and scraped; MiB of memory (PSS); milliseconds of scrapes."""

    cpu: float
    cpu_scraped: float
    memory: float
    scrape_median: float = 0.0
    scrape_p99: float = 0.0
    series: int = 0


def main() -> int:
    if sys.argv[1:2] == ["--kubelet"]:
        asyncio.run(_kubelet(Path(sys.argv[2]), sys.argv[3]))
        return 0
    costs = measured()
    print(f"{'':<26} CPU alone, scraped    memory     scrape median, p99 ms, series")
    for name, cost in costs.items():
        scrapes = f"{cost.scrape_median:6.2f} {cost.scrape_p99:6.2f} {cost.series:6}" if cost.series else ""
        print(f"{name:<26} {cost.cpu:6.2f} {cost.cpu_scraped:6.2f} ms/s {cost.memory:6.1f} MiB  {scrapes}")
    checks = verdicts(costs)
    for name, figure, passed in checks:
        print(f"{name:<48}  {figure:<30}  {'ok' if passed else 'MISSED'}")
    failed = sum(not passed for _, _, passed in checks)
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


def verdicts(costs: dict[str, Cost]) -> list[tuple[str, str, bool]]:
    floor, sampler, agent = costs["floor"], costs["podgpu sampler"], costs["podgpu agent"]
    other = costs["nvitop-exporter"]
    times = sampler.cpu / floor.cpu
    profiling = sampler.cpu / costs["floor with profiling"].cpu
    more = sampler.memory - floor.memory
    return [
        ("sampler's CPU / floor's, <= 1.3", f"{times:.2f}", times <= 1.3),
        ("sampler's CPU / floor's with profiling, <= 1.3", f"{profiling:.2f}", profiling <= 1.3),
        ("sampler's memory - floor's, <= 4 MiB", f"{more:.1f} MiB", more <= 4),
        ("agent's CPU, <= 3 ms/s", f"{agent.cpu:.2f} ms/s", agent.cpu <= 3),
        ("agent's memory, <= 30 MiB", f"{agent.memory:.1f} MiB", agent.memory <= 30),
        (
            f"p99 of {SCRAPES} scrapes, below nvitop-exporter's",
            f"{agent.scrape_p99:.2f} / {other.scrape_p99:.2f} ms",
            agent.scrape_p99 < other.scrape_p99,
        ),
    ]


def measured() -> dict[str, Cost]:
    costs: dict[str, Cost] = {}
    # As an installed package is: a module that is compiled on import leaves its traces in memory.
    for path in os.environ["PYTHONPATH"].split(os.pathsep):
        compileall.compile_dir(path, quiet=2)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        for duty in DUTIES:
            stack.enter_context(_tenant(duty, folder))
        time.sleep(10)
        for what, argument in (("floor", []), ("floor with profiling", ["profiling"])):
            with _started([sys.executable, "-c", FLOOR, *argument]) as floor:
                costs |= _observe({what: floor.pid}, None)
        with _agent(folder, stack) as agent:
            found = _observe({"agent": agent.pid, "sampler": _child(agent.pid)}, "podgpu")
            costs |= {f"podgpu {part}": cost for part, cost in found.items()}
        with _started(
            [sys.executable, "-m", "nvitop_exporter", "--port", str(PORTS["nvitop-exporter"])]
        ) as other:
            costs |= _observe({"nvitop-exporter": other.pid}, "nvitop-exporter")
    return costs


@contextmanager
def _tenant(duty: float, folder: Path) -> Iterator[None]:
    with MadeUpPod(f"tenant-{duty:g}", folder) as pod:
        process = pod.start([sys.executable, str(LOAD), "4096", str(duty), "1024"])
        try:
            yield
        finally:
            process.kill()
            process.wait()


@contextmanager
def _agent(folder: Path, stack: ExitStack) -> Iterator[subprocess.Popen[bytes]]:
    kubelet = folder / "kubelet"
    kubelet.mkdir()
    stack.enter_context(_started([sys.executable, __file__, "--kubelet", str(kubelet), _uuid()]))
    with _started(
        [
            *(sys.executable, "-m", "podgpu", "agent", "--interval=1s"),
            f"--web.listen-address=127.0.0.1:{PORTS['podgpu']}",
            *(f"--path.kubelet={kubelet}", f"--path.logs={folder}", "--log.level=error"),
        ]
    ) as agent:
        time.sleep(WARM_UP)
        page = _page(PORTS["podgpu"])
        booked = page.count(b"podgpu_container_memory_used_bytes{")
        assert booked == len(DUTIES), f"{booked} of {len(DUTIES)} pods are on the page\n{page.decode()}"
        yield agent


async def _kubelet(root: Path, uuid: str) -> None:
    """A kubelet that gave a replica of the card to each tenant."""
    from tests.fakekubelet.kubelet import FakeKubelet, Reply
    from tests.fakekubelet.rig import given

    listed = [
        given(
            f"{uuid}::{number}".encode(),
            pod=f"tenant-{duty:g}".encode(),
            namespace=b"bench",
            container=b"main",
        )
        for number, duty in enumerate(DUTIES)
    ]
    async with FakeKubelet(root) as kubelet:
        kubelet.replies["/v1.PodResourcesLister/List"] = Reply(b"".join(listed))
        await asyncio.Event().wait()


@contextmanager
def _started(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _observe(pids: dict[str, int], scraped: str | None) -> dict[str, Cost]:
    """Watch processes for a while: left alone, scraped once a second, and then scraped often."""
    time.sleep(WARM_UP)
    alone = _busy(pids, lambda: None)
    if scraped is None:
        return {name: Cost(alone[name], alone[name], _pss(pid)) for name, pid in pids.items()}
    port = PORTS[scraped]
    busy = _busy(pids, lambda: _page(port))
    latencies = sorted(_latency(port) for _ in range(SCRAPES))
    middle, late = latencies[SCRAPES // 2], latencies[SCRAPES * 99 // 100]
    series = sum(not line.startswith(b"#") for line in _page(port).splitlines())
    return {
        name: Cost(alone[name], busy[name], _pss(pid), middle, late, series) for name, pid in pids.items()
    }


def _latency(port: int) -> float:
    """Milliseconds of a scrape, at no moment of the cycle in particular."""
    time.sleep(random.uniform(0.03, 0.07))
    began = time.perf_counter()
    _page(port)
    return 1e3 * (time.perf_counter() - began)


def _busy(pids: dict[str, int], once_a_second: Callable[[], object]) -> dict[str, float]:
    """Milliseconds of CPU time that each process takes a second."""
    before, began = {name: _cpu_seconds(pid) for name, pid in pids.items()}, time.monotonic()
    while time.monotonic() - began < SECONDS:
        once_a_second()
        time.sleep(1)
    seconds = time.monotonic() - began
    return {name: (_cpu_seconds(pid) - before[name]) * 1e3 / seconds for name, pid in pids.items()}


def _page(port: int) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        page: bytes = answer.read()
        return page


def _cpu_seconds(pid: int) -> float:
    """Seconds of CPU time so far, by the scheduler's own count: the clock ticks of stat are too coarse."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def _pss(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))


def _child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def _uuid() -> str:
    done = subprocess.run(
        ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()[0]


if __name__ == "__main__":
    sys.exit(main())
