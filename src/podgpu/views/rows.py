"""The rows of `podgpu top` and `podgpu idle` as a JSON document."""

import msgspec

from podgpu.insight import rows
from podgpu.insight.idle import idle_pods
from podgpu.insight.selection import EVERYTHING
from podgpu.model import Cluster
from podgpu.views.json import Object, plain

ROWS_SCHEMA = 1
IDLE = "idle"
KINDS = (*rows.VIEWS, IDLE)


def document(cluster: Cluster, by: str) -> bytes:
    """`by` is one of KINDS."""
    head = {"schema": ROWS_SCHEMA, "taken_at": cluster.taken_at, "by": by}
    return msgspec.json.encode(head | (_idle(cluster) if by == IDLE else _rows(cluster, by)))


def _rows(cluster: Cluster, by: str) -> Object:
    """Each row has the key that tells it from others of its name, and its use as it is shown."""
    entries = rows.VIEWS[by](cluster, EVERYTHING)
    return {"rows": [{"key": plain(one.key), **plain(one.row), "use": plain(one.row.use)} for one in entries]}


def _idle(cluster: Cluster) -> Object:
    currency = cluster.insight.currency if cluster.insight else ""
    found: Object = plain(idle_pods(cluster))
    return found | ({"currency": currency} if currency else {})
