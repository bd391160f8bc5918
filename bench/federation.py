"""Measures a view of several clusters: `python -m bench.federation [CLUSTERS NODES]`, 10 of 1,000 nodes by default.

Each node has 8 GPUs and 10 pods. Another process plays the `podgpu cluster` that each cluster is read from.
"""

import asyncio
import gc
import resource
import sys
import time
from asyncio.subprocess import PIPE
from pathlib import Path

from bench.stress.served import Hanging
from podgpu.assembly.cluster import open_cluster
from podgpu.assembly.server import open_cluster_pages
from podgpu.config.precedence import load
from podgpu.insight import conclude_cluster, conclude_node
from podgpu.model import Cluster, ClusterNode
from podgpu.model.document import decode
from podgpu.option.value import Address
from podgpu.serve.cluster.server import ClusterServer
from podgpu.views.cluster import json as cluster_json
from podgpu.views.cluster import metrics
from podgpu.views.cluster.metrics import join, rendered
from podgpu.views.exposition import Format
from tests.tree import SETTINGS

PLAYED = "--play"
SERIES = 10_000


async def play(nodes: int) -> None:
    """Serve a cluster, and change all of its nodes whenever a line comes."""
    from bench.fleet import documents

    document = await documents()

    def made(version: int) -> Cluster:
        found = [
            conclude_node(
                ClusterNode(
                    name=f"{number:010}",
                    state="fresh",
                    origin="agent",
                    snapshot=decode(document(number, version)),
                ),
                SETTINGS,
            )
            for number in range(nodes)
        ]
        return conclude_cluster(Cluster(taken_at=time.time(), version="1.0", nodes=tuple(found)), SETTINGS)

    feed = Hanging(made(0))
    server = ClusterServer(feed, open_cluster_pages(load({}, {})), max_requests=40, max_connections=100, max_streams=10)
    await server.start([Address("127.0.0.1", 0)])
    await server.prepare()
    print(server.addresses[0].port, flush=True)
    version = 0
    while await asyncio.to_thread(sys.stdin.readline):
        version += 1
        feed.publish(made(version))
        await server.prepare()
        print("changed", flush=True)


async def measure(clusters: int, nodes: int) -> dict[str, float]:
    played = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.federation", PLAYED, str(nodes)), stdin=PIPE, stdout=PIPE
    )
    assert played.stdin and played.stdout
    port = int(await played.stdout.readline())
    upstreams = [f"c{number:02}=http://127.0.0.1:{port}" for number in range(clusters)]
    flags = {"cluster_upstreams": upstreams, "cluster_interval": ["10m"], "cluster_timeout": ["1m"]}
    opened = open_cluster(load(flags, {}))
    federation = opened.loop
    opened.running.cancel()
    found: dict[str, float] = {}

    async def timed(name: str) -> None:
        wall, work = time.monotonic(), time.process_time()
        await federation.round()
        found[f"{name}, wall s"] = time.monotonic() - wall
        found[f"{name}, processor s"] = time.process_time() - work

    gc.freeze()
    await timed("first view")
    found["nodes"] = len(federation.cluster.nodes)
    found["GPUs"] = (federation.cluster.insight.sums.gpus or 0) if federation.cluster.insight else 0
    await timed("refresh, nothing changed")
    played.stdin.write(b"go\n")
    await played.stdout.readline()
    await timed("refresh, all changed")
    began = time.process_time()
    found["document MB"] = len(cluster_json.encode(federation.cluster)) / 1e6
    found["document, processor s"] = time.process_time() - began
    began = time.process_time()
    parts = [rendered(metrics.of_cluster(federation.cluster), SERIES)]
    parts += [rendered(metrics.of_node(node), SERIES) for node in federation.cluster.nodes]
    found["metrics MB"] = len(join(parts, Format.TEXT)) / 1e6
    found["metrics, processor s"] = time.process_time() - began
    found["memory (PSS) MiB"] = _pss()
    found["memory, peak MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    played.stdin.close()
    await played.wait()
    await opened.close()
    return found


def _pss() -> float:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))


def main(arguments: list[str]) -> None:
    if arguments[:1] == [PLAYED]:
        asyncio.run(play(int(arguments[1])))
        return
    clusters, nodes = [*map(int, arguments), 10, 1000][:2] if len(arguments) != 1 else [int(arguments[0]), 1000]
    found = asyncio.run(measure(clusters, nodes))
    for name, value in found.items():
        print(f"{name:<40}  {value:>12,.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
