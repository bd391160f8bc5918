"""What the memory of each process is made of: `python -m bench.memory` loads its modules step by step.

A step is what the process has more than before it, by its private pages: those that would be free if it ended. Pages of
files that other programs have too, such as the interpreter's, are shared and left out.
"""

import compileall
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import podgpu
from bench.figure import Figure

ROUNDS = 3
MIB = 1024.0  # KiB
SOURCES = str(Path(podgpu.__file__).parents[1])
PROCESSES: dict[str, dict[str, str]] = {
    "agent": {
        "interpreter": "pass",
        "msgspec": "import msgspec",
        "argparse, dataclasses, pathlib": "import argparse, dataclasses, pathlib, inspect",
        "options and pages": "import podgpu.config",
        "asyncio with ssl": "import asyncio, ssl",
        "attribution, sharing, insight": "import podgpu.agent.attribution, podgpu.agent.loop",
        "gRPC": "import podgpu.kube.kubelet.podresources",
        "protobuf": "import podgpu.kube.kubelet.pods_api",
        "the rest of Kubernetes": "import podgpu.assembly.agent",
        "HTTP server": "import podgpu.cli._agent_parts",
    },
    "sampler": {
        "interpreter": "import sys; sys.modules['typing_extensions'] = None",
        "msgspec": "import msgspec",
        "model": "import podgpu.model, podgpu.sources",
        "catalog": "import podgpu.catalog",
        "the driver's bindings": "import ctypes, pynvml",
        "reader": "import podgpu.sources.nvml.child",
    },
    "reader of the log": {
        "interpreter": f"import sys; sys.path.append({SOURCES!r})",
        "ctypes, signal": "import ctypes, signal",
        "reader": "import podgpu.sources.switches.child",
    },
}
BARE = {"reader of the log": ("-S", "-P")}  # how it is started, if it is not as usual
_REPORT = """
import gc
gc.collect()
with open("/proc/self/smaps_rollup") as file:
    print(sum(int(line.split()[1]) for line in file if line.startswith("Private_")))
"""


def run() -> list[Figure]:
    # As an installed package is: a module that is compiled on import leaves its traces in memory.
    compileall.compile_dir(Path(SOURCES) / "podgpu", quiet=2)
    return [figure for process, steps in PROCESSES.items() for figure in _figures(process, steps)]


def _figures(process: str, steps: Mapping[str, str]) -> list[Figure]:
    figures, loaded, before = [], "import gc; gc.disable()", 0.0
    for title, code in steps.items():
        loaded = f"{loaded}\n{code}"
        now = _private_mib(loaded, BARE.get(process, ()))
        figures.append(Figure(f"memory of the {process}: {title}", f"{now - before:.1f} MiB"))
        before = now
    return [*figures, Figure(f"memory of the {process}: all that is loaded", f"{before:.1f} MiB")]


def _private_mib(code: str, flags: Sequence[str]) -> float:
    command = [sys.executable, *flags, "-c", code + _REPORT]
    environment = {**os.environ, "MALLOC_ARENA_MAX": "2"}
    runs = (subprocess.run(command, check=True, capture_output=True, env=environment) for _ in range(ROUNDS))
    return min(int(done.stdout) for done in runs) / MIB


if __name__ == "__main__":
    for figure in run():
        print(f"{figure.name:<64} {figure.value:>10}")
