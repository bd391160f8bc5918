"""What is held still: each scenario's node, the demo, a recording of it, and clusters with faults or dark nodes."""

import tempfile
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from msgspec.structs import replace

from podgpu.insight import ensured, reconclude
from podgpu.model import Booking, Cluster, ClusterNode, Fault, PartStatus, PendingPod, Snapshot, of_one
from podgpu.views import json as node_json
from podgpu.views.cluster import json
from podgpu.views.cluster.json import slim
from tests.agreement import rig
from tests.fakekubelet.kubelet import kubelet_root
from tests.scenarios.play import play
from tests.scenarios.script import read
from tests.sources.simulator.clocked_agent import cycles
from tests.tree import SETTINGS

SCENARIOS = Path(__file__).parents[1] / "scenarios"
OTHERS = ("demo", "recording", "cluster")


def names() -> list[str]:
    return [*sorted(path.parent.name for path in SCENARIOS.glob("*/node.yaml")), *OTHERS]


async def held_still(wanted: Iterable[str]) -> AsyncIterator[tuple[str, Cluster]]:
    for name in wanted:
        yield name, await _cluster(name)


async def _cluster(name: str) -> Cluster:
    if name in rig.PLAYS:
        return await rig.played(name)
    if name in OTHERS:
        demo = await _demo()
        return {"demo": of_one(demo), "recording": _recorded(demo), "cluster": _faulty(demo)}[name]
    with tempfile.TemporaryDirectory() as folder, kubelet_root() as kubelet:
        return of_one(await play(read(SCENARIOS / name / "node.yaml"), Path(folder), kubelet))


async def _demo() -> Snapshot:
    """After three minutes, so that bookings have ranges, and one card's samples were compared with its log."""
    return [agent.snapshot async for agent in cycles(5.0, 190)][-1]


def _recorded(demo: Snapshot) -> Cluster:
    """As it comes back from a recording, which is as slim as a cluster's document."""
    return replace(ensured(json.decode(json.encode(of_one(slim(demo)))), SETTINGS), replayed=True)


def _faulty(demo: Snapshot) -> Cluster:
    """Three nodes: one as it is, one with a lost card and a part that is down, and one that does not answer."""
    first, second = replace(demo, node="gpu-1"), replace(_renamed(demo), node="gpu-2")
    fault = Fault(reason="lost", detail="it fell off the bus")
    held = [replace(tenant, booking=Booking(), processes=(), idle=None) for tenant in second.cards[0].tenants]
    lost = replace(second.cards[0], fault=fault, readings=(), rest=(), balance=None, tenants=tuple(held))
    down = PartStatus(name="podresources", up=False, fault=Fault(reason="no_socket"))
    parts = tuple([down if part.name == down.name else part for part in demo.parts])
    second = replace(second, cards=(lost, *second.cards[1:]), parts=parts, insight=None)
    nodes = (
        ClusterNode(name="gpu-1", state="fresh", origin="agent", snapshot=first),
        ClusterNode(name="gpu-2", state="fresh", origin="agent", snapshot=second),
        ClusterNode(name="gpu-3", state="failed", reason="timeout", detail="No answer in time."),
    )
    waiting = PendingPod(namespace="ml", name="waits", asks={"nvidia.com/gpu": "1"})
    cluster = Cluster(taken_at=demo.taken_at, version=demo.version, demo=True, nodes=nodes, pending=(waiting,))
    return reconclude(cluster, SETTINGS)


def _renamed(snapshot: Snapshot) -> Snapshot:
    """The same in other namespaces: no two nodes have the same pod."""
    return node_json.decode(node_json.encode(snapshot).replace(b'"namespace":"', b'"namespace":"b-'))
