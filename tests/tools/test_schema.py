"""docs/snapshot.md describes the whole document, and nothing else."""

from pathlib import Path

import msgspec
import pytest

from podgpu import model
from podgpu.views import json
from tests.views.quirks import SNAPSHOT
from tools.schema import Table, markdown, tables

PAGE = Path(__file__).parents[2] / "docs" / "snapshot.md"
TABLES = {table.name: table for table in tables()}


def test_the_page_in_the_docs_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(), "run make docs"


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_struct_and_every_field_is_described(table: Table) -> None:
    assert table.description.endswith((".", ":"))
    assert [field.name for field in table.fields if not field.comment] == []
    assert [field.name for field in table.fields] == list(getattr(model, table.name).__struct_fields__)


def test_every_struct_of_the_tree_has_a_table() -> None:
    expected = {"Snapshot", "Card", "Tenant", "Booking", "Rest", "Balance", "Process", "Holder", "VirtualGpu"}
    assert expected <= TABLES.keys()
    assert "Device" not in TABLES and "Report" not in TABLES


def test_a_field_that_may_be_absent_says_so() -> None:
    idle = next(field for field in TABLES["Tenant"].fields if field.name == "idle")
    assert idle.kind == "boolean, may be absent"
    assert next(field for field in TABLES["Card"].fields if field.name == "tenants").kind == "list of [Tenant](#tenant)"


def test_the_document_has_the_fields_of_the_page() -> None:
    document = msgspec.json.decode(json.encode(SNAPSHOT))
    fields = {field.name: field.kind for field in TABLES["Snapshot"].fields}
    always = {name for name, kind in fields.items() if "may be absent" not in kind}
    assert always <= set(document) - {"schema"} <= fields.keys()
    assert set(document["cards"][0]) <= {field.name for field in TABLES["Card"].fields}
