"""Rows as files: the lines of CSV are those of the whole file, and no cell is a formula."""

import csv
import json
from io import StringIO

import pytest
from msgspec.structs import replace

from podgpu.insight import reconclude
from podgpu.model import PendingPod
from podgpu.views.json import ROW_KINDS, rows_document
from podgpu.views.rows_file import RowsQuery, rows_written
from tests.cluster.nodes import card, fresh, tenant
from tests.tree import SETTINGS
from tests.views.test_rows_document import CLUSTER

HOSTILE = reconclude(
    replace(
        CLUSTER,
        nodes=(*CLUSTER.nodes, fresh("gpu-c", card("GPU-c", tenant("=cmd()/a", 0.5), tenant('m"l/a,b', 0.5)))),
        pending=(PendingPod(namespace="ml", name="next", reason="0/2 nodes\nare available"),),
    ),
    SETTINGS,
)


def written(by: str) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(rows_written(HOSTILE, RowsQuery(by, "csv")).decode())))


@pytest.mark.parametrize("by", ROW_KINDS)
def test_each_line_is_a_row_of_the_file(by: str) -> None:
    whole = rows_written(HOSTILE, RowsQuery(by, "csv")).decode()
    found = json.loads(rows_written(HOSTILE, RowsQuery(by, "lines")))
    assert found["head"] + "".join(line for _, line in found["lines"]) == whole
    rows = json.loads(rows_document(HOSTILE, by))["rows"]
    assert len(found["lines"]) == len(rows) != 0
    if "key" in rows[0]:
        assert [key for key, _ in found["lines"]] == [row["key"] for row in rows]


def test_what_is_not_known_is_empty_and_never_0() -> None:
    (row,) = (row for row in written("pods") if row["name"] == "next")
    assert (row["held_gpus"], row["busy_gpus"], row["power_watts"]) == ("", "", "")


def test_no_cell_is_taken_for_a_formula() -> None:
    assert "'=cmd()" in [row["namespace"] for row in written("pods")]
    assert [row["reason"] for row in written("pending")] == ["0/2 nodes are available"]
