"""Opens what keeps the last hour of a node or of a cluster."""

import time

from podgpu.agent.playback import Playback
from podgpu.cluster.store.pod_history import LEAST_STEP, POINTS, StoreHistory
from podgpu.config import Config
from podgpu.history.divisions import CardsOfNode, NodesOfCluster
from podgpu.history.kept import Kept
from podgpu.history.recorded import RecordedHistory
from podgpu.history.timeline import Object, timeline
from podgpu.model import Card, Cluster, ClusterNode, Snapshot

NODE_BYTES, CLUSTER_BYTES = 4 << 20, 64 << 20
# An agent may read faster; a moment every few seconds is enough. Nodes are many.
NODE_STEP, CLUSTER_STEP = 5.0, 30.0
# As many changes are read for one moment, at most.
NODE_WHOLE, CLUSTER_WHOLE = 120, 30


def open_node_history(config: Config) -> Kept[Snapshot, Card] | None:
    most = NODE_BYTES if config.history_size is None else config.history_size
    return Kept(CardsOfNode(), step=NODE_STEP, whole_every=NODE_WHOLE, most_bytes=most) if most else None


def open_recorded_history(playback: Playback) -> RecordedHistory:
    """All of a recording is its past, also what is to be played yet."""
    return RecordedHistory(playback.player.times, playback.moment)


async def stored_timeline(history: StoreHistory, hours: int) -> Object:
    """A timeline of so many hours until now, from a store."""
    seconds = 3600 * hours
    step = max(LEAST_STEP, seconds // POINTS)
    moments = await history.moments(seconds, step)
    now = time.time()
    return timeline(moments, now - seconds, now, step)


def open_cluster_history(config: Config) -> Kept[Cluster, ClusterNode] | None:
    most = CLUSTER_BYTES if config.history_size is None else config.history_size
    return (
        Kept(NodesOfCluster(), step=CLUSTER_STEP, whole_every=CLUSTER_WHOLE, most_bytes=most)
        if most
        else None
    )
