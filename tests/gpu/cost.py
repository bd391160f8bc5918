"""What podgpu costs a node with a real GPU, with and without the log of context switches, beside nvitop-exporter.

Two pods work on the card, in the cgroups of made-up pods (needs root and cgroup v2), and a kubelet's sockets list them.
Beside them stands Python with the driver's library loaded, making the bare calls of a cycle. `calls.py` says what each
call of podgpu's sampler costs. Each program runs by itself, so that none profits from what the driver has just looked
up for another. Prints each round, with what each process of podgpu takes, then the medians and which targets are met.
A program that fails is reported with what it wrote to stderr, and the others go on.

It takes nine minutes. From the environment: ROUNDS, SECONDS_EACH, DCGM_EXPORTER (see `programs`).
"""

import compileall
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields
from math import inf
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])

from bench.start import load_figures  # noqa: E402 - the path is set above
from tests.gpu.pods import MadeUpPod  # noqa: E402 - the path is set above

SECONDS = float(os.environ.get("SECONDS_EACH", "15"))
ROUNDS = int(os.environ.get("ROUNDS", "3"))
WARM_UP = 12.0  # a kubelet is asked in every cycle until then
SCRAPES = 100
STDERR_LINES = 20
LOAD = ROOT / "tests" / "gpu" / "load.py"
CALLS = ROOT / "tests" / "gpu" / "calls.py"
KUBELET = ROOT / "tests" / "gpu" / "kubelet.py"
DUTIES = (1.0, 0.3)

# The bare calls of a cycle, profiling counters included.
FLOOR = """
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
    request.sample1, request.sample2 = samples
    nvml.nvmlGpmMetricsGet(request)
    samples.reverse()
    time.sleep(max(0.0, began + 1 - time.monotonic()))
"""


@dataclass(frozen=True)
class Cost:
    """Of all processes of a program: seconds to its first page, milliseconds of CPU time a second, alone and scraped;

    MiB of memory (PSS); milliseconds of scrapes; series on its page.
    """

    first_page: float
    cpu: float
    cpu_scraped: float
    memory: float
    scrape_median: float = 0.0
    scrape_p99: float = 0.0
    series: int = 0

    def __str__(self) -> str:
        figures = f"{self.first_page:6.2f} s {self.cpu:7.2f} {self.cpu_scraped:7.2f} ms/s {self.memory:6.1f} MiB"
        scrapes = f"{self.scrape_median:6.2f} {self.scrape_p99:6.2f} ms {self.series:5}"
        return f"{figures}  {scrapes}" if self.series else figures


class ProgramFailed(Exception):
    """Its arguments are why, and the last lines that the program wrote to stderr."""


@dataclass(frozen=True)
class Program:
    """`page` is what its page has once it is worth reading."""

    name: str
    command: list[str]
    port: int
    page: bytes


def programs(kubelet: Path, logs: Path) -> list[Program]:
    """dcgm-exporter only where DCGM_EXPORTER has its command and port, as in `dcgm-exporter -a :19497 19497`."""
    agent = [
        *(sys.executable, "-m", "podgpu", "agent", "--interval=1s", "--log.level=error"),
        *(f"--path.kubelet={kubelet}", f"--path.logs={logs}"),
    ]
    address = "--web.listen-address=127.0.0.1:"
    found = [
        Program("podgpu", [*agent, "--switches=off", f"{address}19499"], 19499, b"podgpu_gpu_power_watts{"),
        Program(
            "podgpu with the log",
            [*agent, "--switches=on", f"{address}19496"],
            19496,
            b"podgpu_gpu_power_watts{",
        ),
        Program(
            "nvitop-exporter",
            [sys.executable, "-m", "nvitop_exporter", "--port", "19498"],
            19498,
            b"gpu_power_usage_W{",
        ),
    ]
    if "DCGM_EXPORTER" in os.environ:
        *command, port = os.environ["DCGM_EXPORTER"].split()
        found.append(Program("dcgm-exporter", command, int(port), b"DCGM_FI_DEV_POWER_USAGE{"))
    return found


def main() -> int:
    costs, failures = measured()
    print(f"{'':<22} first page  CPU alone, scraped     memory   scrape median, p99, series")
    for name, cost in costs.items():
        print(f"{name:<22} {cost}")
    for name, reason in failures.items():
        print(f"{name:<22} failed: {reason}")
    checks = verdicts(costs)
    for name, figure, passed in checks:
        print(f"{name:<44}  {figure:<24}  {'ok' if passed else 'MISSED'}")
    failed = sum(not passed for _, _, passed in checks)
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


def verdicts(costs: dict[str, Cost]) -> list[tuple[str, str, bool]]:
    """Judge what was measured. What a program that failed would be judged by is missed."""
    unknown = Cost(inf, inf, inf, inf, inf, inf)
    own, logged, other = (costs.get(name, unknown) for name in ("podgpu", "podgpu with the log", "nvitop-exporter"))
    more_cpu, more_memory = logged.cpu - own.cpu, logged.memory - own.memory
    return [
        ("first page, <= 0.5 s", f"{own.first_page:.2f} s", own.first_page <= 0.5),
        ("CPU left alone, <= 9 ms/s", f"{own.cpu:.2f} ms/s", own.cpu <= 9),
        ("memory, <= 65 MiB", f"{own.memory:.1f} MiB", own.memory <= 65),
        ("CPU of the log, <= 20 ms/s", f"{more_cpu:.2f} ms/s", more_cpu <= 20),
        ("memory of the log, <= 8 MiB", f"{more_memory:.1f} MiB", more_memory <= 8),
        (
            "p99 of scrapes, below nvitop-exporter's",
            f"{own.scrape_p99:.2f} / {other.scrape_p99:.2f} ms",
            own.scrape_p99 < other.scrape_p99 < inf,
        ),
    ]


def measured() -> tuple[dict[str, Cost], dict[str, str]]:
    """Medians of rounds, in each of which every program runs once, so that a slow minute of the machine is shared.

    The second result says of programs that failed why they did, the last time.
    """
    # As an installed package is: a module that is compiled on import leaves its traces in memory.
    for path in os.environ["PYTHONPATH"].split(os.pathsep):
        compileall.compile_dir(path, quiet=2)
    rounds: dict[str, list[Cost]] = {}
    failures: dict[str, str] = {}
    for figure in load_figures():
        print(f"{figure.name:<44}  {figure.value}")
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        for duty in DUTIES:
            stack.enter_context(_tenant(duty, folder))
        kubelet = folder / "kubelet"
        kubelet.mkdir()
        stack.enter_context(_started([sys.executable, str(KUBELET), str(kubelet), _uuid(), *map(_name, DUTIES)]))
        time.sleep(10)
        print("calls of the sampler", flush=True)
        subprocess.run([sys.executable, str(CALLS), str(SECONDS)], check=False)
        for number in range(ROUNDS):
            with _started([sys.executable, "-c", FLOOR]) as floor:
                time.sleep(WARM_UP)
                bare = sum(_busy(floor.pid, lambda: None).values())
                rounds.setdefault("bare calls", []).append(Cost(0.0, bare, 0.0, _pss(floor.pid)))
            for program in programs(kubelet, folder):
                print(f"round {number + 1}  {program.name:<22} ", end="", flush=True)
                try:
                    rounds.setdefault(program.name, []).append(found := _observe(program))
                    print(found, flush=True)
                except ProgramFailed as error:
                    failures[program.name], written = error.args
                    print(f"failed: {failures[program.name]}\n{written}", flush=True)
    return {name: _medians(costs) for name, costs in rounds.items() if costs}, failures


def _medians(costs: list[Cost]) -> Cost:
    return Cost(*(median(getattr(cost, field.name) for cost in costs) for field in fields(Cost)))


def _name(duty: float) -> str:
    return f"tenant-{duty:g}"


@contextmanager
def _tenant(duty: float, folder: Path) -> Iterator[None]:
    with MadeUpPod(_name(duty), folder) as pod:
        process = pod.start([sys.executable, str(LOAD), "4096", str(duty), "1024"])
        try:
            yield
        finally:
            process.kill()
            process.wait()


@contextmanager
def _started(command: list[str], errors: int = subprocess.DEVNULL) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _observe(program: Program) -> Cost:
    began = time.monotonic()
    with tempfile.TemporaryFile() as errors, _started(program.command, errors.fileno()) as process:
        try:
            return _watched(program, process, began)
        except (OSError, TimeoutError) as error:
            ended = process.poll()
            reason = str(error) if ended is None else f"it ended with exit code {ended}"
            errors.seek(0)
            written = errors.read().decode(errors="replace").splitlines()[-STDERR_LINES:]
            raise ProgramFailed(reason, "\n".join(written)) from error


def _watched(program: Program, process: subprocess.Popen[bytes], began: float) -> Cost:
    """Watch a program for a while: left alone, scraped once a second, and then scraped often."""
    first_page = _first_page(program, process, began)
    time.sleep(WARM_UP)
    if program.page.startswith(b"podgpu"):
        booked = _page(program.port).count(b"podgpu_container_memory_used_bytes{")
        if booked != len(DUTIES):
            msg = f"{booked} of {len(DUTIES)} pods are on the page"
            raise OSError(msg)
    alone = _busy(process.pid, lambda: None)
    scraped = _busy(process.pid, lambda: _page(program.port))
    latencies = sorted(_latency(program.port) for _ in range(SCRAPES))
    series = sum(not line.startswith(b"#") for line in _page(program.port).splitlines())
    middle, late = latencies[SCRAPES // 2], latencies[SCRAPES * 99 // 100]
    cost = Cost(first_page, sum(alone.values()), sum(scraped.values()), _pss(process.pid), middle, late, series)
    if len(alone) > 1:
        print()
        for member, cpu in alone.items():
            print(f"  {_title(member):<28} {cpu:7.2f} {scraped.get(member, 0.0):7.2f} ms/s {_own_pss(member):6.1f} MiB")
    return cost


def _first_page(program: Program, process: subprocess.Popen[bytes], began: float) -> float:
    while time.monotonic() - began < 60:
        with suppress(OSError):
            if program.page in _page(program.port):
                return time.monotonic() - began
        if process.poll() is not None:
            break
        time.sleep(0.01)
    msg = f"no page with {program.page.decode()}"
    raise TimeoutError(msg)


def _latency(port: int) -> float:
    """Milliseconds of a scrape, at no moment of the cycle in particular."""
    time.sleep(random.uniform(0.03, 0.07))
    began = time.perf_counter()
    _page(port)
    return 1e3 * (time.perf_counter() - began)


def _busy(pid: int, once_a_second: Callable[[], object]) -> dict[int, float]:
    """Milliseconds of CPU time that a process and each of its descendants take a second."""
    before, began = _cpu_seconds(pid), time.monotonic()
    while time.monotonic() - began < SECONDS:
        once_a_second()
        time.sleep(1)
    after, elapsed = _cpu_seconds(pid), time.monotonic() - began
    return {member: (after[member] - before.get(member, 0.0)) * 1e3 / elapsed for member in after}


def _page(port: int) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        page: bytes = answer.read()
        return page


def _family(pid: int) -> list[int]:
    """A process and its descendants."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(member for child in children for member in _family(int(child)))]


def _cpu_seconds(pid: int) -> dict[int, float]:
    """Seconds of CPU time so far, by the scheduler's own count: the clock ticks of stat are too coarse."""
    return {member: sum(map(_task_seconds, Path(f"/proc/{member}/task").iterdir())) for member in _family(pid)}


def _task_seconds(task: Path) -> float:
    return int((task / "schedstat").read_text().split()[0]) / 1e9


def _pss(pid: int) -> float:
    return sum(map(_own_pss, _family(pid)))


def _own_pss(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))


def _title(pid: int) -> str:
    """The module that a process runs."""
    arguments = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    modules = [argument for argument in arguments if argument.startswith("podgpu")]
    return modules[-1] if modules else arguments[0]


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
