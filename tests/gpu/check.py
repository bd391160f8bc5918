"""Checks podgpu against nvidia-smi on a machine with a real GPU, and prints one table.

Needs PyTorch for the load and podgpu's dependencies on PYTHONPATH; changes no setting of the card.
"""

import asyncio
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])

from podgpu.sources.nvml.source import NvmlSource  # noqa: E402 - the path is set above

LOAD = ROOT / "tests" / "gpu" / "load.py"
NOBODY = 65534
RELEASES = int(os.environ.get("RELEASES", "1000"))
SAMPLERS = 5  # take part in the release cycles at a time
MIB = 1 << 20

COPY = """
import torch
host = torch.empty(1 << 30, dtype=torch.uint8).pin_memory()
card = torch.empty_like(host, device="cuda")
torch.cuda.synchronize()
print("ready", flush=True)
input()
for _ in range(100):
    card.copy_(host, non_blocking=True)
torch.cuda.synchronize()
print(100 << 30, flush=True)
"""

Check = tuple[str, str, bool]


def main() -> int:
    checks = all_checks()
    failed = [name for name, _, passed in checks if not passed]
    print(f"{len(checks) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def all_checks() -> list[Check]:
    checks: list[Check] = []
    with load(8192, 1.0, 2048) as first, load(4096, 0.3, 1024) as second:
        time.sleep(5)
        checks += told(equals_nvidia_smi([first.pid, second.pid]))
        checks += told(within_noise())
        checks += told(profiling())
        checks += told(unprivileged())
    checks += told(pcie_bytes())
    checks += told(releases())
    checks += told(overhead())
    return checks


def told(checks: list[Check]) -> list[Check]:
    for name, figure, passed in checks:
        print(f"{name:<40}  {figure:<60}  {'ok' if passed else 'FAILED'}", flush=True)
    return checks


@contextmanager
def load(size: int, duty: float, mebibytes: int) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, str(LOAD), str(size), str(duty), str(mebibytes)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    process.stdout.readline()  # the first second is over: it is warm
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def smi(query: str, *fields: str) -> list[list[str]]:
    done = subprocess.run(
        ["nvidia-smi", f"--query-{query}={','.join(fields)}", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines()]


def snapshot(**options: Any) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "podgpu", "snapshot", "-o", "json"],
        capture_output=True,
        check=False,
        **options,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.decode())
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def reading(device: dict[str, Any], metric: str, **labels: str) -> float:
    for reading in device["readings"]:
        if reading["metric"] == metric and labels.items() <= reading.get("labels", {}).items():
            return float(reading["value"])
    raise KeyError(metric)


def mebibytes(number: float) -> int:
    """As nvidia-smi prints them: rounded up."""
    return math.ceil(number / MIB)


def on_card(card: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every process on a card, whoever owns it."""
    return [process for place in (*card["tenants"], *card["rest"]) for process in place["processes"]]


def equals_nvidia_smi(pids: list[int]) -> list[Check]:
    """Identity, memory and processes, each equal in the same second."""
    device = snapshot()["cards"][0]
    uuid, total, used = smi("gpu", "uuid", "memory.total", "memory.used")[0]
    theirs = {int(pid): int(memory) for pid, memory in smi("compute-apps", "pid", "used_memory")}
    ours = {process["pid"]: mebibytes(process["memory_bytes"]) for process in on_card(device)}
    our_total = mebibytes(reading(device, "memory_total_bytes"))
    our_used = mebibytes(reading(device, "memory_used_bytes"))
    return [
        ("uuid", device["gpu"]["uuid"], device["gpu"]["uuid"] == uuid),
        ("memory total, MiB", f"{our_total} / {total}", our_total == int(total)),
        ("memory used, MiB", f"{our_used} / {used}", our_used == int(used)),
        ("processes, pid: MiB", f"{ours} / {theirs}", ours == theirs and set(pids) <= set(ours)),
    ]


def within_noise() -> list[Check]:
    """Values that move: podgpu's must lie within what nvidia-smi says around it, and a little slack."""
    fields = ("utilization.gpu", "power.draw", "temperature.gpu", "clocks.sm", "clocks.mem")
    before = [float(cell) for cell in smi("gpu", *fields)[0]]
    device = snapshot()["cards"][0]
    after = [float(cell) for cell in smi("gpu", *fields)[0]]
    ours = [
        reading(device, "utilization_ratio") * 100,
        reading(device, "power_watts"),
        reading(device, "temperature_celsius", sensor="gpu"),
        reading(device, "clock_hertz", clock="sm") / 1e6,
        reading(device, "clock_hertz", clock="memory") / 1e6,
    ]
    slack = (5, 25, 2, 120, 1)
    return [
        (f"{name}", f"{mine:.0f} / {low:.0f}..{high:.0f}", low - room <= mine <= high + room)
        for name, mine, room, low, high in zip(
            fields, ours, slack, map(min, before, after), map(max, before, after), strict=True
        )
    ]


def profiling() -> list[Check]:
    device = snapshot()["cards"][0]
    names = ("sm_active_ratio", "tensor_active_ratio", "dram_active_ratio")
    floors = (0.5, 0.3, 0.02)
    return [
        (f"GPM {name}", f"{reading(device, name):.3f}", floor < reading(device, name) <= 1)
        for name, floor in zip(names, floors, strict=True)
    ]


def pcie_bytes() -> list[Check]:
    """Copy a known amount to the card and see how much the counter grew; packets have headers, so it is more."""
    with subprocess.Popen(
        [sys.executable, "-c", COPY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        copied, counted = asyncio.run(_copy_and_count(process))
    excess = counted / copied - 1
    figure = f"{counted / 2**30:.2f} GiB counted for {copied / 2**30:.0f} GiB copied"
    return [("PCIe bytes received", figure, 0 <= excess < 0.15)]


async def _copy_and_count(process: subprocess.Popen[str]) -> tuple[int, float]:
    sampler = NvmlSource(interval=1, library=None)
    assert process.stdin and process.stdout
    process.stdout.readline()  # memory is allocated, nothing copied yet
    before = await _received(sampler)
    process.stdin.write("go\n")
    process.stdin.flush()
    while process.poll() is None:
        await asyncio.sleep(0.5)
        await sampler.read()
    after = await _received(sampler)
    await sampler.close()
    return int(process.stdout.readline()), after - before


async def _received(sampler: NvmlSource) -> float:
    while not (report := await sampler.read()).devices:
        continue  # the driver may be busy with the other process
    readings = report.devices[0].readings
    return next(reading.value for reading in readings if reading.metric == "pcie_receive_bytes_total")


def unprivileged() -> list[Check]:
    """The same reading as uid 65534 without a single capability."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        paths = [shutil.copytree(path, folder / str(number)) for number, path in enumerate(_python_paths())]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "HOME": "/"}
        options = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "env": environment, "cwd": "/"}
        theirs = snapshot(**options)["cards"][0]
    mine = snapshot()["cards"][0]
    metrics = {(reading["metric"], str(reading.get("labels"))) for reading in mine["readings"]}
    same = metrics == {(reading["metric"], str(reading.get("labels"))) for reading in theirs["readings"]}
    pids = {process["pid"] for process in on_card(mine)} == {process["pid"] for process in on_card(theirs)}
    return [
        (
            "as uid 65534, no capabilities",
            f"{len(theirs['readings'])} / {len(metrics)} readings",
            same and pids,
        )
    ]


def _python_paths() -> list[Path]:
    return [Path(entry) for entry in os.environ["PYTHONPATH"].split(os.pathsep) if entry and Path(entry).is_dir()]


def releases() -> list[Check]:
    """Open the GPU and let it go many times. Nothing of it may stay open in this process or any other."""
    began = time.monotonic()
    bad = asyncio.run(_release_side_by_side())
    left = _holders()
    figure = f"{RELEASES} in {time.monotonic() - began:.0f} s, {bad} failed, still open: {left}"
    return [("release cycles leave nothing open", figure, bad == 0 and not left)]


async def _release_side_by_side() -> int:
    return sum(await asyncio.gather(*(_release_often(RELEASES // SAMPLERS) for _ in range(SAMPLERS))))


async def _release_often(times: int) -> int:
    sampler = NvmlSource(interval=5, library=None)
    bad = 0
    for _ in range(times):
        report = await sampler.read()
        bad += report.fault is not None or len(report.devices) != 1
        bad += not await sampler.release(0)
    return bad


def _holders() -> list[str]:
    """Python processes, ours among them, that have a GPU's device file open."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            links = [str(link.readlink()) for link in (process / "fd").iterdir()]
            name = (process / "comm").read_text().strip()
        except OSError:
            continue
        if name.startswith("python") and any(link.startswith("/dev/nvidia") for link in links):
            found.append(f"{name}/{process.name}")
    return found


def overhead() -> list[Check]:
    """A running product with the agent at 1 s and without it, in turns."""
    with load(8192, 1.0, 64) as product:
        time.sleep(10)  # until the card is as hot as it gets
        rates: dict[bool, list[float]] = {True: [], False: []}
        for turn in range(16):
            with_agent = turn % 2 == 1
            rates[with_agent] += _turn(product, with_agent=with_agent)
    with_, without = median(rates[True]), median(rates[False])
    lost = (without - with_) / without
    figure = f"{with_:.2f} / {without:.2f} products a second, lost {lost:.3%}"
    return [("a matrix product with the agent at 1 s", figure, lost <= 0.002)]


def _turn(product: subprocess.Popen[str], *, with_agent: bool) -> list[float]:
    assert product.stdout
    agent = _start_agent() if with_agent else None
    try:
        time.sleep(1.5)
        _drain(product)
        return [float(product.stdout.readline().split()[1]) for _ in range(7)]
    finally:
        if agent:
            agent.terminate()
            agent.wait()


def _drain(product: subprocess.Popen[str]) -> None:
    """Forget what was measured before this turn, and the second in which it began."""
    assert product.stdout
    now = time.monotonic()
    while float(product.stdout.readline().split()[0]) < now + 1:
        continue


def _start_agent() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "podgpu", "agent", "--interval=1s", "--web.listen-address=127.0.0.1:19400"],
        stderr=subprocess.DEVNULL,
    )


if __name__ == "__main__":
    sys.exit(main())
