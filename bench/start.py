"""Measures where the time goes until the first page: what each process loads at its start.

The sampler starts while the agent loads its own modules, so these times overlap.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping

from bench.figure import Figure

ROUNDS = 3
STEPS = {
    "Python alone": "pass",
    "load what opens the source": "import podgpu.cli._agent_process",
    "load all of the agent": "import podgpu.cli._agent_parts",
    "load the sampler": "import podgpu.sources.nvml.child",
    "load the sampler and open the driver's library": (
        "import podgpu.sources.nvml.child, pynvml, os; pynvml.nvmlInit(); os._exit(0)"
    ),
}


def load_figures(variables: Mapping[str, str] | None = None) -> list[Figure]:
    return [Figure(f"start: {title}", f"{_seconds(code, variables or {}):.3f} s") for title, code in STEPS.items()]


def _seconds(code: str, variables: Mapping[str, str]) -> float:
    """The best of some rounds: a busy moment of the machine does not count."""
    seconds = []
    for _ in range(ROUNDS):
        began = time.monotonic()
        subprocess.run([sys.executable, "-c", code], check=False, env={**os.environ, **variables})
        seconds.append(time.monotonic() - began)
    return min(seconds)
