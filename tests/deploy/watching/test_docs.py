"""What the pages about alerts and dashboards say: queries that exist, and all dashboards."""

import re

import pytest

from tests.deploy.watching.rulebook import ROOT
from tests.deploy.watching.vocabulary import mistakes
from tools.dashboards.__main__ import DASHBOARDS

ALERTS = (ROOT / "docs/alerts.md").read_text()
BOARDS = (ROOT / "docs/dashboards.md").read_text()

QUERIES = [
    line
    for block in re.findall(r"```promql\n(.*?)```", ALERTS, re.DOTALL)
    for line in block.splitlines()
    if not line.startswith("#")
]
# The one query that asks for everything names no metric.
NAMELESS = 'topk(10, count by (__name__) ({__name__=~"podgpu_.+", node="NODE"}))'


@pytest.mark.parametrize("query", [query for query in QUERIES if query != NAMELESS])
def test_a_query_names_only_metrics_and_labels_that_exist(query: str) -> None:
    assert mistakes(query) == []


def test_the_query_that_is_left_out_is_still_there() -> None:
    assert NAMELESS in QUERIES


def test_every_dashboard_is_listed() -> None:
    assert re.findall(r"`/d/([\w-]+)`", BOARDS) == [dashboard.uid for dashboard in DASHBOARDS]
