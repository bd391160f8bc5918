"""The document of rows has what `podgpu top` and `podgpu idle` show."""

import json

import msgspec
import pytest
from msgspec.structs import replace

from podgpu.insight import InsightSettings, reconclude, rows
from podgpu.insight.idle import IdleRow, idle_pods
from podgpu.insight.rows import SummaryRow
from podgpu.insight.selection import EVERYTHING
from podgpu.model import Cluster, ClusterNode, Pod, Prices
from podgpu.views.json import ROW_KINDS, rows_document
from tests.cluster.nodes import card, fresh, tenant
from tests.tree import SETTINGS


def with_pods(node: ClusterNode, *pods: Pod) -> ClusterNode:
    assert node.snapshot is not None
    return replace(node, snapshot=replace(node.snapshot, pods=pods))


BUSY = fresh("gpu-a", card("GPU-a", tenant("ml/train", 0.5)))
SHARED = fresh("gpu-b", card("GPU-b", tenant("web/serve", 0.2), tenant("web/other", 0.5, idle=True)))
LABELLED = Pod(namespace="ml", name="train", uid="uid-train", labels={"team": "vision"})
CLUSTER = reconclude(
    Cluster(taken_at=1_700_000_000.0, version="1.0", nodes=(with_pods(BUSY, LABELLED), SHARED)), SETTINGS
)


@pytest.mark.parametrize("by", list(rows.VIEWS))
def test_a_document_has_the_rows_of_top(by: str) -> None:
    found = json.loads(rows_document(CLUSTER, by))
    assert (found["schema"], found["by"], found["taken_at"]) == (1, by, CLUSTER.taken_at)
    entries = rows.VIEWS[by](CLUSTER, EVERYTHING)
    assert [msgspec.convert(row, SummaryRow) for row in found["rows"]] == [entry.row for entry in entries] != []
    assert [row["key"] for row in found["rows"]] == [entry.key for entry in entries]
    assert [row["use"].get("ratio") for row in found["rows"]] == [entry.row.use.ratio for entry in entries]


def test_a_document_of_idle_holders_is_that_of_podgpu_idle() -> None:
    settings = InsightSettings(idle_after=1800.0, prices=Prices(currency="EUR", gpu_hour={"*H200*": 2.0}))
    cluster = reconclude(CLUSTER, settings)
    found, wanted = json.loads(rows_document(cluster, "idle")), idle_pods(cluster)
    assert tuple(msgspec.convert(row, IdleRow) for row in found["rows"]) == wanted.rows != ()
    assert (found["unknown"], found["unread"], found["currency"]) == (wanted.unknown, [], "EUR")
    assert "idle" in ROW_KINDS


def test_what_is_not_known_is_absent() -> None:
    assert b"null" not in b"".join(rows_document(CLUSTER, by) for by in ROW_KINDS)
