"""Measures what the last hour costs: memory and CPU time of a crowded node and of a thousand nodes.

The node has 8 GPUs with 5 tenants each, and all of their numbers change every 5 seconds. A node of the cluster has 8
GPUs and 10 pods. What it costs is compared with what attribution and insight cost for the same snapshots.

`python -m bench.history agents ROUNDS` runs two agents side by side on such a node, with the last hour and without.
"""

import asyncio
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from msgspec.structs import replace

from bench.figure import Figure
from bench.footprint import family, machine, page
from podgpu.assembly.server import open_cluster_history, open_node_history
from podgpu.config import Config
from podgpu.insight import InsightSettings, conclude_cluster
from podgpu.model import Card, Cluster, ClusterNode, Snapshot
from podgpu.views.cluster.json import slim
from tests.fakenvml.fake_node import FakeNode, h200, make_processes, swings
from tests.history.crowded_node import BORN, crowded_snapshots
from tests.ports import quiet_port

HOUR, STEP = 720, 5.0
NODES, MOMENTS, PODS = 1000, 24, 10
TENANTS, ROUND_SECONDS = 40, 60
MIB = 1 << 20
SETTINGS = InsightSettings(idle_after=1800.0)


def run() -> list[Figure]:
    return [*asyncio.run(_node()), *asyncio.run(_cluster())]


async def _node() -> list[Figure]:
    history = open_node_history(Config())
    assert history is not None
    booking = keeping = 0.0
    resident = _resident()
    began = time.process_time()
    async for snapshot in crowded_snapshots(HOUR, STEP):
        booking += time.process_time() - began
        began = time.process_time()
        await history.keep(snapshot)
        keeping += time.process_time() - began
        began = time.process_time()
    grown = _resident() - resident
    assert history.span is not None
    then = history.span[1] - 2400.0
    began = time.process_time()
    past = history.at(then)
    assert past is not None and past.whole().taken_at <= then
    looked = time.process_time() - began
    return [
        Figure(
            "history, 8 GPUs and 40 tenants",
            f"{history.size / MIB:.2f} MiB",
            "<= 4",
            ok=history.size <= 4 * MIB,
        ),
        Figure("history, minutes kept", f"{(history.span[1] - history.span[0]) / 60:.1f}", ">= 59", ok=True),
        Figure("growth of the process with it", f"{grown / MIB:.1f} MiB"),
        Figure("history, CPU time for each moment", f"{keeping / HOUR * 1e3:.2f} ms"),
        Figure("sampling left out, booking each of these", f"{booking / HOUR * 1e3:.2f} ms"),
        Figure("a moment 40 minutes ago, CPU time", f"{looked * 1e3:.0f} ms"),
    ]


async def _cluster() -> list[Figure]:
    history = open_cluster_history(Config())
    assert history is not None
    taken = [slim(_with_pods(snapshot)) async for snapshot in crowded_snapshots(MOMENTS, 30.0)]
    resident, keeping = _resident(), 0.0
    for number in range(MOMENTS):
        cluster = _of(taken[number], BORN + number * 240.0)
        began = time.process_time()
        await history.keep(cluster)
        keeping += time.process_time() - began
        del cluster
    assert history.span is not None
    return [
        Figure(f"history, {NODES:,} nodes", f"{history.size / MIB:.1f} MiB", "<= 96", ok=history.size <= 96 * MIB),
        Figure(f"history, minutes kept, {NODES:,} nodes", f"{(history.span[1] - history.span[0]) / 60:.0f}"),
        Figure(f"growth of the process with it, {NODES:,} nodes", f"{(_resident() - resident) / MIB:.0f} MiB"),
        Figure(f"history, CPU time for each moment, {NODES:,} nodes", f"{keeping / MOMENTS:.2f} s"),
        Figure(f"time between two moments at last, {NODES:,} nodes", f"{history.step:.0f} s"),
    ]


def _of(snapshot: Snapshot, at: float) -> Cluster:
    nodes = tuple(
        ClusterNode(
            name=f"node-{number:04}",
            state="fresh",
            origin="agent",
            snapshot=replace(snapshot, node=f"node-{number:04}"),
        )
        for number in range(NODES)
    )
    cluster = Cluster(taken_at=at, version="1", interval_seconds=15.0, nodes=nodes)
    return conclude_cluster(cluster, SETTINGS)


def _with_pods(snapshot: Snapshot) -> Snapshot:
    def cut(card: Card) -> Card:
        return replace(card, tenants=card.tenants[: 2 if card.gpu.index < 2 else 1])

    return replace(snapshot, cards=tuple(map(cut, snapshot.cards)), pods=snapshot.pods[:PODS])


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def run_agents(rounds: int) -> None:
    """Print the CPU time of an agent that is scraped every 5 s, with the last hour and without, and of its sampler."""
    with machine(_crowded_machine(), TENANTS) as host, ExitStack() as stack:
        ports = (quiet_port(), quiet_port())
        agents = [host.start(port, *options) for port, options in zip(ports, ((), ("--history.size=0",)), strict=True)]
        for agent in agents:
            stack.callback(agent.wait)
            stack.callback(agent.terminate)
        while not all(page(port).count(b"podgpu_pod_info{") == TENANTS for port in ports):
            time.sleep(0.1)
        families = [family(agent.pid) for agent in agents]
        for number in range(rounds):
            before = [list(map(_processor_seconds, pids)) for pids in families]
            for _ in range(ROUND_SECONDS // 5):
                time.sleep(5)
                for port in ports:
                    page(port)
            spent = [
                [_processor_seconds(pid) - was for pid, was in zip(pids, known, strict=True)]
                for pids, known in zip(families, before, strict=True)
            ]
            (kept, *first), (plain, *second) = spent
            sampler = (sum(first) + sum(second)) / 2
            print(
                f"round {number + 1}: agent {kept:.3f} s with, {plain:.3f} s without, sampler {sampler:.3f} s:"
                f" {(kept - plain) / (plain + sampler):+.1%}",
                flush=True,
            )


def _crowded_machine() -> FakeNode:
    """Eight GPUs with five processes each, whose numbers change."""
    node = FakeNode([h200(index) for index in range(8)])
    for number in range(TENANTS):
        sm = swings(12, 7, 31 + number)
        node.gpus[number % 8].processes += make_processes(1, first_pid=10_000 + number, sm=sm)
    for index, gpu in enumerate(node.gpus):
        for name in ("utilization_gpu", "utilization_memory", "temperature[0]"):
            gpu.values[name] = swings(50, 30, 37 + index)
        gpu.values |= {
            "power": swings(400_000, 250_000, 41 + index),
            "memory_used": swings(60e9, 9e9, 43 + index),
        }
        gpu.gpm |= {number: swings(50, 40, 29 + index + number) for number in (1, 2, 3, 4, 5, 7, 10, 20, 21)}
    return node


def _processor_seconds(pid: int) -> float:
    """The process's own clock, which is finer than the ticks in /proc."""
    return time.clock_gettime(~pid << 3 | 2)


if __name__ == "__main__":
    if sys.argv[1:2] == ["agents"]:
        run_agents(int(sys.argv[2]))
        sys.exit()
    for row in run():
        print(f"{row.name:52} {row.value:>12}  {row.target:8} {'ok' if row.ok else 'MISSED'}")
