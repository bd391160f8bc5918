"""Measures what the last hour costs: memory and CPU time of a crowded node and of a thousand nodes.

The node has 8 GPUs with 5 tenants each, and all of their numbers change every 5 seconds. A node of the cluster has 8
GPUs and 10 pods. What it costs is compared with what attribution and insight cost for the same snapshots.
"""

import asyncio
import os
import time
from pathlib import Path

from msgspec.structs import replace

from bench.figure import Figure
from podgpu.assembly.server import open_cluster_history, open_node_history
from podgpu.config import Config
from podgpu.insight import InsightSettings, conclude_cluster
from podgpu.model import Card, Cluster, ClusterNode, Snapshot
from podgpu.views.cluster.json import slim
from tests.history.crowded_node import BORN, crowded_snapshots

HOUR, STEP = 720, 5.0
NODES, MOMENTS, PODS = 1000, 20, 10
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
    assert await history.at(then) is not None
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
        Figure(
            f"history, {NODES:,} nodes", f"{history.size / MIB:.1f} MiB", "<= 64", ok=history.size <= 64 * MIB
        ),
        Figure(f"history, minutes kept, {NODES:,} nodes", f"{(history.span[1] - history.span[0]) / 60:.0f}"),
        Figure(
            f"growth of the process with it, {NODES:,} nodes", f"{(_resident() - resident) / MIB:.0f} MiB"
        ),
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


if __name__ == "__main__":
    for row in run():
        print(f"{row.name:52} {row.value:>12}  {row.target:8} {'ok' if row.ok else 'MISSED'}")
