"""Rows are the same, made from whole nodes or from what rows need of them."""

import pytest
from msgspec.structs import replace

from podgpu.insight.row_needs import needed_for_rows
from podgpu.model import ClusterNode
from podgpu.views import json
from podgpu.views.rows_file import RowsQuery, rows_written
from tests.agreement.cases import held_still, names


@pytest.mark.parametrize("name", names())
async def test_every_kind_of_rows_is_the_same(name: str) -> None:
    (cluster,) = [cluster async for _, cluster in held_still([name])]
    lost = ClusterNode(name="zz-lost", state="failed", reason="timeout", detail="No answer within 5 s.")
    cluster = replace(cluster, nodes=(*cluster.nodes, lost))
    bare, nodes = replace(cluster, nodes=()), cluster.nodes
    for kind in json.ROW_KINDS:
        query = RowsQuery(kind)
        assert rows_written(bare, query, iter(nodes)) == rows_written(cluster, query)


async def test_most_of_a_node_is_not_needed() -> None:
    (cluster,) = [cluster async for _, cluster in held_still(["demo"])]
    whole = sum(len(json.encode(node.snapshot)) for node in cluster.nodes if node.snapshot)
    needed = [needed_for_rows(node).snapshot for node in cluster.nodes]
    assert sum(len(json.encode(snapshot)) for snapshot in needed if snapshot) < whole / 2
