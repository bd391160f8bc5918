"""Compares a sampling cycle of eight GPUs with direct calls for the slowest of them.

Each call of the fake library takes the time that it took on a real H200, so reading the GPUs one after another would
cost several times as much as reading them in parallel.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.figure import Figure
from podgpu.sources.nvml.source import NvmlSource
from tests.fakenvml.build import build
from tests.fakenvml.fake_node import eight_gpu_node, environment, h200_delays

CYCLES = 25
PAUSE = 0.15  # seconds; the profiler would wait if samples were less than 0.1 s apart
TARGET = 1.3


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library = build(folder)
        node = eight_gpu_node()
        node.delays = h200_delays()
        node.write(folder / "script")
        fake = environment(library, folder / "script")
        direct = _direct(fake)
        cycle = _cycle(fake)
    ratio = cycle / max(direct)
    return [
        Figure("the calls of the slowest GPU, made directly", f"{max(direct) * 1e3:.1f} ms"),
        Figure("the calls of all eight GPUs, one after another", f"{sum(direct) * 1e3:.1f} ms"),
        Figure("a sampling cycle of all eight GPUs", f"{cycle * 1e3:.1f} ms"),
        Figure("cycle / slowest GPU", f"{ratio:.2f}", f"<= {TARGET}", ok=ratio <= TARGET),
    ]


def _direct(fake: dict[str, str]) -> list[float]:
    """Return the seconds for each GPU, measured in a separate process that does nothing else."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.direct", str(CYCLES), str(PAUSE)],
        env={**os.environ, **fake},
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(line) for line in done.stdout.split()]


def _cycle(fake: dict[str, str]) -> float:
    os.environ.update(fake)
    try:
        return asyncio.run(_read_often())
    finally:
        for name in fake:
            del os.environ[name]


async def _read_often() -> float:
    sampler = NvmlSource(interval=5, library=None)
    await sampler.read()  # the first also loads the library
    seconds = []
    for _ in range(CYCLES):
        await asyncio.sleep(PAUSE)
        seconds.append((await sampler.read()).seconds)
    await sampler.close()
    return median(seconds)
