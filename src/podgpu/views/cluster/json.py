"""The cluster as a JSON document: a row for each node, with the node's own document in it.

A row is encoded when its node changes; the document is joined from ready rows.
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from podgpu.model import (
    CLUSTER_SCHEMA,
    Card,
    Cluster,
    ClusterNode,
    Holder,
    Insight,
    Process,
    Reading,
    Rest,
    Snapshot,
    Tenant,
)
from podgpu.model.document import decode_cluster as decode
from podgpu.views import json
from podgpu.views.dialects import container_json

__all__ = ["decode", "document", "encode", "frame", "row"]

_PLACE = b'"nodes":[]'
_GZIP_CONTAINER = 16 + zlib.MAX_WBITS


def encode(cluster: Cluster) -> bytes:
    return b"".join(document(cluster, cluster.nodes))


def document(cluster: Cluster, nodes: Iterable[ClusterNode]) -> Iterator[bytes]:
    """Encode a cluster with these nodes, one after the other."""
    before, after = frame(cluster)
    yield before
    for number, node in enumerate(nodes):
        yield b"," + row(node) if number else row(node)
    yield after


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


_XIDS = ("xid_last_code", "xid_last_timestamp_seconds")
_RATIOS = ("utilization_ratio", "sm_active_ratio", "tensor_active_ratio", "dram_active_ratio")
_SIZES = ("memory_used_bytes", "memory_total_bytes", "power_watts", "power_limit_watts", "temperature_celsius")
_METRICS = frozenset({*_RATIOS, *_SIZES, *_XIDS})
# Shown where they are not 0.
_ALARMS = frozenset(
    {"recovery_action", "row_remap_failed", "row_remap_pending", "retired_pages_pending", "ecc_errors_total"}
)


def slim(snapshot: Snapshot) -> Snapshot:
    return replace(
        snapshot,
        cards=tuple(map(_card, snapshot.cards)),
        pods=tuple(
            replace(pod, containers=(), annotations={}, scheduler="", resource_claims={}, extended=())
            for pod in snapshot.pods
        ),
        errors=(),
        insight=_insight(snapshot.insight) if snapshot.insight else None,
    )


def _insight(insight: Insight) -> Insight:
    """Without the sentences that a cluster writes anew, about all of its nodes."""
    rows = tuple([replace(row, text="", message="") for row in insight.waste]) if insight.waste is not None else None
    return replace(insight, waste=rows, answers=None)


def _card(card: Card) -> Card:
    return replace(
        card,
        readings=_readings(card.readings),
        instances=tuple(replace(instance, readings=_readings(instance.readings)) for instance in card.instances),
        tenants=tuple(map(_tenant, card.tenants)),
        ended=(),
        rest=tuple(map(_rest, card.rest)),
    )


def _readings(readings: tuple[Reading, ...]) -> tuple[Reading, ...]:
    return tuple([reading for reading in readings if _is_shown(reading)])


def _is_shown(reading: Reading) -> bool:
    return (
        reading.metric in _METRICS
        or (reading.metric in _ALARMS and bool(reading.value))
        or (reading.metric, reading.labels) in container_json.READINGS
    )


def _tenant(tenant: Tenant) -> Tenant:
    return replace(tenant, processes=tuple(replace(process, holder=None) for process in tenant.processes))


def _rest(rest: Rest) -> Rest:
    """Keep the titles of owners that have no pod: nothing else names them."""
    return replace(rest, processes=tuple(map(_outsider, rest.processes)))


def _outsider(process: Process) -> Process:
    holder = process.holder
    if holder is None:
        return process
    return replace(process, holder=Holder(pid=holder.pid, kind=holder.kind, command=holder.command, title=holder.title))
