"""The cluster as a JSON document: a row for each node, with the node's own document in it.

A row is encoded when its node changes; the document is joined from ready rows.
"""

import zlib
from typing import Any

import msgspec
from msgspec.structs import replace

from podgpu.model import CLUSTER_SCHEMA, Cluster, ClusterNode
from podgpu.model.document import decode_cluster as decode
from podgpu.views import json

__all__ = ["decode", "encode", "frame", "row"]

_PLACE = b'"nodes":[]'
_GZIP_CONTAINER = 16 + zlib.MAX_WBITS


def encode(cluster: Cluster) -> bytes:
    before, after = frame(cluster)
    return b"".join((before, b",".join(map(row, cluster.nodes)), after))


def row(node: ClusterNode) -> bytes:
    """Encode one node. Joined with others, it makes the document."""
    plain, written = json.plain(replace(node, snapshot=None)), node.written
    if written is not None and written.snapshot is node.snapshot:
        # The agent wrote this document: that is much faster than to write it again.
        plain["snapshot"] = msgspec.Raw(zlib.decompress(written.document, _GZIP_CONTAINER))
    elif node.snapshot is not None:
        plain["snapshot"] = msgspec.Raw(json.encode(node.snapshot))
    return msgspec.json.encode(plain)


def frame(cluster: Cluster) -> tuple[bytes, bytes]:
    """Return what stands before the rows of the nodes, and after them."""
    head: dict[str, Any] = json.plain(replace(cluster, nodes=()))
    whole = msgspec.json.encode({"schema": CLUSTER_SCHEMA, **head})
    # No text of the frame can contain the place: its quotes would be escaped.
    before, place, after = whole.partition(_PLACE)
    return before + place[:-1], b"]" + after
