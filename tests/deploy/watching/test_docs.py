"""What the pages about alerts and dashboards say: queries that exist, links that lead somewhere, all dashboards."""

import re

import pytest

from tests.deploy.watching.rulebook import ROOT
from tests.deploy.watching.vocabulary import mistakes
from tools.dashboards.__main__ import DASHBOARDS

ALERTS = (ROOT / "docs/alerts.md").read_text()
PAGES = {
    name: (ROOT / "docs" / name).read_text()
    for name in ("alerts.md", "dashboards.md", "operations.md", "sharing.md")
}

QUERIES = [
    line
    for block in re.findall(r"```promql\n(.*?)```", ALERTS, re.DOTALL)
    for line in block.splitlines()
    if not line.startswith("#")
]
# The one query that asks for everything names no metric.
NAMELESS = 'topk(10, count by (__name__) ({__name__=~"podgpu_.+", node="NODE"}))'
LINKS = [
    (page, link)
    for page in ("alerts.md", "dashboards.md")
    for link in re.findall(r"\]\(([^)]+)\)", PAGES[page])
]


@pytest.mark.parametrize("query", [one for one in QUERIES if one != NAMELESS])
def test_a_query_names_only_metrics_and_labels_that_exist(query: str) -> None:
    assert mistakes(query) == []


def test_the_query_that_is_left_out_is_still_there() -> None:
    assert NAMELESS in QUERIES


@pytest.mark.parametrize(("page", "link"), LINKS)
def test_a_link_leads_somewhere(page: str, link: str) -> None:
    name, _, anchor = link.partition("#")
    text = PAGES[name or page]
    assert not anchor or anchor in {_anchor(title) for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


def test_every_dashboard_is_listed() -> None:
    assert re.findall(r"`/d/([\w-]+)`", PAGES["dashboards.md"]) == [one.uid for one in DASHBOARDS]


def _anchor(title: str) -> str:
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
