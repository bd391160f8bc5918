"""A recording that a command plays itself."""

import time

from msgspec.structs import replace

from podgpu.errors import UserError
from podgpu.insight import InsightSettings, ensured
from podgpu.model import Cluster, Snapshot
from podgpu.sources.player import Player
from podgpu.views.cluster import json

_MOST_WAIT_SECONDS = 0.1  # a key may pause it at any time


class RecordingTarget:
    def __init__(self, player: Player, settings: InsightSettings) -> None:
        self.player = player
        self._settings = settings
        self._number = player.number
        self.cluster = self._taken()

    @property
    def is_one_node(self) -> bool:
        return len(self.cluster.nodes) == 1

    def changed(self, seen: Cluster, seconds: float) -> Cluster:
        until = time.monotonic() + seconds
        while self.cluster is seen and (left := until - time.monotonic()) > 0:
            time.sleep(min(self.player.seconds_to_next, left, _MOST_WAIT_SECONDS))
            number = self.player.number
            if number != self._number:
                self._number = number
                self.cluster = self._taken()
        return self.cluster

    def full(self, node: str) -> Snapshot:
        """A recording has what was recorded, and no more."""
        found = next((known.snapshot for known in self.cluster.nodes if known.name == node), None)
        if found is None:
            raise UserError(f"the recording knows nothing of the GPUs of node {node} at this moment")
        return found

    def past(self, at: float) -> Cluster:
        raise UserError("a recording is stepped through by its player")

    def close(self) -> None:
        """Nothing is open."""

    def _taken(self) -> Cluster:
        cluster = json.decode(self.player.document(self._number))
        nodes = [
            replace(node, snapshot=replace(node.snapshot, replayed=True)) if node.snapshot else node
            for node in cluster.nodes
        ]
        return ensured(replace(cluster, replayed=True, nodes=tuple(nodes)), self._settings)
