"""The past on the screen: `[` and `]` step through what an agent or a cluster has kept of the last hour."""

from podgpu.cli._target import Target
from podgpu.cli._top.rows import TopRows
from podgpu.errors import UserError
from podgpu.insight.selection import PodSelection
from podgpu.model import Cluster
from podgpu.numbers import moment

BACK, FORTH = "[", "]"
_A_LITTLE = 0.001  # before a moment is the one before it
# To the next moment, by how often they are kept, and a little for those that come late.
_NODE_SECONDS, _CLUSTER_SECONDS = 6.0, 35.0


class PastRows:
    """`rows` are those of the moment that is shown; None in the present."""

    def __init__(self, target: Target, chosen: PodSelection) -> None:
        self.rows: TopRows | None = None
        self._target = target
        self._chosen = chosen

    @property
    def mode(self) -> str:
        return f"PAST {moment(self.rows.cluster.taken_at)}" if self.rows else ""

    def leave(self) -> None:
        self.rows = None

    def step(self, key: str, shown: TopRows, view: str) -> str:
        """Go to the moment before or after what is shown. Return why not, if there is none."""
        if key == FORTH and self.rows is None:
            return "this is the present"
        try:
            found = self._found(key, shown.cluster)
        except UserError as error:
            return str(error)
        self.rows = TopRows(found, self._chosen).prepare(view) if found else None
        return ""

    def _found(self, key: str, shown: Cluster) -> Cluster | None:
        """Return None if what comes next is the present."""
        if key == BACK:
            return self._target.past(shown.taken_at - _A_LITTLE)
        step = max(
            _NODE_SECONDS if self._target.is_one_node else _CLUSTER_SECONDS, 1.2 * shown.interval_seconds
        )
        newest = self._target.cluster.taken_at
        if shown.taken_at + step >= newest:
            return None
        found = self._target.past(shown.taken_at + step)
        return found if found.taken_at > shown.taken_at else None
