"""Measures a view of 1,000 and 2,000 nodes, each with 8 GPUs and 10 pods, from agents that another process plays."""

import json
import subprocess
import sys
from typing import NamedTuple

from bench.figure import Figure

NODES, MANY = 1000, 2000
PATHS = ("/api/v1/cluster", "/api/v1/cluster gzip", "/metrics", "/metrics gzip")


class Goal(NamedTuple):
    title: str
    limit: float
    unit: str = "s"


GOALS = {
    "first": Goal("first full view", 10.0),
    "few": Goal("refresh, 1 % changed", 0.5),
    "all": Goal("refresh, all changed", 4.0),
    **{path: Goal(path, 0.1) for path in PATHS},
    "work": Goal("longest work between two turns of the loop", 0.1),
    "memory": Goal("memory (PSS)", 300.0, "MiB"),
}
LINEAR = 2.2  # twice as many nodes, and a little for larger tables


def run() -> list[Figure]:
    few, many = _figures(NODES), _figures(MANY)
    rows = [
        Figure(
            f"{goal.title}, {NODES:,} nodes",
            f"{few[name]:.3f} {goal.unit}",
            f"<= {goal.limit:g}",
            ok=few[name] <= goal.limit,
        )
        for name, goal in GOALS.items()
    ]
    rows.append(Figure(f"loop away, waiting for a processor included, {NODES:,} nodes", f"{few['blocked']:.3f} s"))
    rows += [
        Figure(f"{GOALS[name].title}, processor time, {NODES:,} nodes", f"{few[f'{name}, work']:.3f} s")
        for name in ("first", "few", "all")
    ]
    for name in ("first, work", "all, work", "memory"):
        ratio = many[name] / few[name]
        title = f"{name}, {MANY:,} / {NODES:,} nodes"
        rows.append(Figure(title, f"{ratio:.2f}", f"<= {LINEAR}", ok=ratio <= LINEAR))
    return rows


def _figures(nodes: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.reader", str(nodes)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found
