"""Why the dcgm pages name nobody on a shared card unless asked to: the figures that docs/migration.md has."""

import re
from pathlib import Path

import pytest

from tests.e2e.asked.defaults import ABOUT_CARDS, ARBITRARY, EACH, NOBODY, Score, measured
from tests.e2e.prometheus import PROGRAM

MIGRATION = Path(__file__).parents[3] / "docs" / "migration.md"
ROW = re.compile(r"\| (.+?) \| (\d+) of 17 \| (\d+) of 9 \| (\d+) of (\d+) \|")


@pytest.mark.skipif(PROGRAM is None, reason="prometheus is not installed")
def test_the_figures_of_the_migration_guide_are_those_measured(tmp_path: Path) -> None:
    told = {row[1]: Score(*map(int, row.group(2, 3, 4))) for row in ROW.finditer(MIGRATION.read_text())}
    found = measured(tmp_path)
    assert [found[NOBODY], found[ARBITRARY], found[EACH]] == list(told.values())
    assert {row[5] for row in ROW.finditer(MIGRATION.read_text())} == {str(len(ABOUT_CARDS))}
