"""A cluster, from its JSON document: a row for each node, with the node's own document in it."""

from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from podgpu.errors import UserError
from podgpu.model import document
from podgpu.model.cluster import CLUSTER_SCHEMA, Cluster, ClusterNode, PendingPod
from podgpu.model.document import BoundsChecker
from podgpu.model.insight import Insight
from podgpu.model.snapshot import ErrorCount, PartStatus

T = TypeVar("T")


class _NodeRow(msgspec.Struct):
    name: str
    state: str
    snapshot: msgspec.Raw = msgspec.Raw(b"")
    cluster: str = ""
    origin: str = ""
    reason: str = ""
    detail: str = ""
    allocatable: dict[str, str] = {}
    model: str = ""
    ready: bool | None = None
    address: str = ""
    insight: Insight | None = None


class _Named(msgspec.Struct):
    name: str


class _Schema(msgspec.Struct):
    schema: int


class _Document(msgspec.Struct):
    """The cluster itself, with rows that are read one by one: a whole document of a large one takes long."""

    taken_at: float
    version: str
    nodes: list[msgspec.Raw]
    interval_seconds: float = 0.0
    name: str = ""
    demo: bool = False
    replayed: bool = False
    has_store: bool = False
    pending: tuple[PendingPod, ...] = ()
    parts: tuple[PartStatus, ...] = ()
    insight: Insight | None = None
    errors: tuple[ErrorCount, ...] = ()


_check_frame = BoundsChecker().checker(_Document)
_check_row = BoundsChecker().checker(_NodeRow)


def decode(data: bytes) -> Cluster:
    """Raises UserError."""
    cluster, rows = split(data)
    return replace(cluster, nodes=tuple([decode_row(row) for row in rows]))


def split(data: bytes) -> tuple[Cluster, list[msgspec.Raw]]:
    """Return the cluster without its nodes, and the row of each. Raises UserError."""
    return _checked(lambda: _split(data))


def decode_row(row: msgspec.Raw) -> ClusterNode:
    """Return a node. What its agent sent may be wrong; a row that is not of a node at all raises UserError."""
    found = _checked(lambda: _row(row))
    fields = {name: getattr(found, name) for name in found.__struct_fields__ if name != "snapshot"}
    node = ClusterNode(**fields)
    try:
        return replace(node, snapshot=document.decode(found.snapshot)) if found.snapshot else node
    except UserError as error:  # the others can be shown
        return replace(node, state="failed", reason="garbage", detail=str(error))


def name_of(row: msgspec.Raw) -> str:
    """Return the name in a row that cannot be decoded as a whole. Raises UserError."""
    return _checked(lambda: msgspec.json.decode(row, type=_Named)).name


def _split(data: bytes) -> tuple[Cluster, list[msgspec.Raw]]:
    schema = msgspec.json.decode(data, type=_Schema).schema
    if schema != CLUSTER_SCHEMA:
        raise UserError(
            f"The cluster's document has schema {schema}, not {CLUSTER_SCHEMA}: use matching versions of podgpu."
        )
    found = msgspec.json.decode(data, type=_Document)
    _check_frame(data)
    frame = {name: getattr(found, name) for name in Cluster.__struct_fields__ if name != "nodes"}
    return Cluster(**frame), found.nodes


def _row(row: msgspec.Raw) -> _NodeRow:
    found = msgspec.json.decode(row, type=_NodeRow)
    _check_row(row)
    return found


def _checked(decoded: Callable[[], T]) -> T:
    try:
        return decoded()
    except (ValueError, RecursionError) as error:  # also of text that is not UTF-8
        raise UserError(
            f"This is not a document of a podgpu cluster ({error}): check the address."
        ) from error
