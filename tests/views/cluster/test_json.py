import gzip

import msgspec
import pytest

from podgpu.errors import UserError
from podgpu.insight import reconclude
from podgpu.model import Card, Cluster, ClusterNode, Gpu, PendingPod, Reading, Written
from podgpu.views.cluster import json
from podgpu.views.json import encode as encode_snapshot
from tests.tree import SETTINGS
from tests.views.quirks import BUSY, EVIL, PODS, SNAPSHOT, SPLIT, STUCK

NODE = msgspec.structs.replace(
    SNAPSHOT,
    insight=None,
    cards=tuple(msgspec.structs.replace(card, readings=(), instances=()) for card in (BUSY, SPLIT, STUCK)),
    pods=tuple(msgspec.structs.replace(pod, annotations={}) for pod in PODS if pod.uid != EVIL.pod_uid),
)
CLUSTER = Cluster(
    taken_at=1_700_000_000.0,
    version="1.0",
    name='"nodes":[]',
    nodes=(
        ClusterNode(name="a", state="fresh", origin="agent", snapshot=NODE, allocatable={"nvidia.com/gpu": "8"}),
        ClusterNode(name="b", state="failed", reason="refused", detail="no agent listens on port 19400"),
    ),
    pending=(PendingPod(namespace="ml", name="waits", asks={"nvidia.com/gpu": "1"}),),
)


def test_a_cluster_comes_back_as_it_was() -> None:
    concluded = reconclude(CLUSTER, SETTINGS)
    assert json.decode(json.encode(concluded)) == concluded


@pytest.mark.parametrize("value", [1e24, -1e24])
def test_a_cluster_of_nodes_that_report_the_largest_numbers_can_be_read(value: float) -> None:
    metrics = ("memory_total_bytes", "memory_used_bytes", "power_watts", "power_limit_watts")
    readings = tuple(Reading(metric, value) for metric in metrics)
    card = Card(gpu=Gpu(uuid="GPU-1", index=0), readings=readings)
    damaged = msgspec.structs.replace(NODE, cards=(card, card))
    nodes = [ClusterNode(name=name, state="fresh", origin="agent", snapshot=damaged) for name in ("a", "b")]
    concluded = reconclude(msgspec.structs.replace(CLUSTER, nodes=tuple(nodes)), SETTINGS)
    assert json.decode(json.encode(concluded)) == concluded


def test_a_cluster_without_nodes_comes_back_too() -> None:
    empty = Cluster(taken_at=1.0, version="1.0")
    assert json.decode(json.encode(empty)) == empty


@pytest.mark.parametrize("data", [b"", b"[]", b'{"schema":1}', b'{"schema":1,"nodes":[1]}'])
def test_anything_else_is_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(UserError) as refusal:
        json.decode(data)
    assert "\n" not in str(refusal.value)


def test_another_schema_is_named() -> None:
    with pytest.raises(UserError, match="schema 9, not 1"):
        json.decode(b'{"schema":9,"nodes":[]}')


def test_a_snapshot_stands_in_its_row_as_the_agent_wrote_it() -> None:
    theirs = encode_snapshot(NODE).replace(b'"node":', b'"unknown_here":1,"node":', 1)
    node = msgspec.structs.replace(CLUSTER.nodes[0], written=Written(NODE, gzip.compress(theirs)))
    row = json.row(node)
    assert theirs in row and b"written" not in row
    plain = msgspec.json.decode(row)
    del plain["snapshot"]["unknown_here"]
    assert plain == msgspec.json.decode(json.row(CLUSTER.nodes[0]))


def test_a_changed_snapshot_is_not_taken_for_what_the_agent_wrote() -> None:
    written = Written(NODE, gzip.compress(encode_snapshot(NODE)))
    changed = msgspec.structs.replace(NODE, node="renamed")
    node = msgspec.structs.replace(CLUSTER.nodes[0], snapshot=changed, written=written)
    assert msgspec.json.decode(json.row(node))["snapshot"]["node"] == "renamed"
