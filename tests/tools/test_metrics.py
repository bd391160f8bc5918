"""docs/metrics.md has everything that the rows say."""

import re
from pathlib import Path

from podgpu.catalog import CATALOG, GROUPS
from podgpu.catalog.reference import aliases
from tools.metrics import markdown

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
FAMILIES = {row.family for row in CATALOG}


def test_the_page_in_the_docs_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(), "run make docs"


def test_the_page_has_one_line_per_family_and_per_row_with_other_names() -> None:
    lines = [line for line in markdown().splitlines() if line.startswith("| `podgpu_")]
    assert len(lines) == len(FAMILIES) + sum(bool(aliases(row)) for row in CATALOG)
    assert {line.split("`")[1] for line in lines[: len(FAMILIES)]} == FAMILIES


def test_every_table_line_has_as_many_cells_as_its_head() -> None:
    for block in markdown().split("\n\n"):
        table = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in table}) <= 1


def test_every_group_can_be_read_off() -> None:
    assert set(re.findall(r"\?collect\[\]=([a-z-]+)", markdown())) == set(GROUPS)
