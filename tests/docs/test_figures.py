"""The figures that README and docs quote are those of docs/figures.json, and that is what the code gives."""

import asyncio
import re

import pytest

from podgpu.model import Snapshot
from tools.figures import (
    MARK,
    ROOT,
    demo_snapshot,
    derived,
    false_samples,
    pages,
    read,
    rewritten,
)

READMES = ("README.md", "README.zh-CN.md")
ROW = re.compile(r"^ +(?P<name>\S+/\S+/\S+) .* (?P<method>[a-z]+)(?: \d+h)?$", re.MULTILINE)


@pytest.fixture(scope="module")
def node() -> Snapshot:
    return asyncio.run(demo_snapshot())


def test_what_follows_from_the_code_is_what_the_file_has(node: Snapshot) -> None:
    assert derived(node) == read(ROOT).derived, "run make figures and review the diff"


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in pages(ROOT)])
def test_every_figure_of_a_page_is_that_of_the_file(page: str) -> None:
    text, figures = (ROOT / page).read_text(), read(ROOT).values
    assert rewritten(text, figures) == text, "run make figures"
    assert false_samples(text, figures) == []


def test_every_measured_figure_says_how_and_is_quoted() -> None:
    quoted = {found["name"] for page in pages(ROOT) for found in MARK.finditer(page.read_text())}
    found = read(ROOT)
    assert found.measured.keys() <= quoted
    assert all(entry.how and entry.under in found.conditions for entry in found.measured.values())


def test_a_false_figure_is_found() -> None:
    figures = {"node.series": "1,161"}
    assert rewritten("has **1,135**<!-- figure: node.series --> series", figures) == (
        "has **1,161**<!-- figure: node.series --> series"
    )
    block = "<!-- sample: node.series -->\n\n```console\npodgpu_series 1141.0\n```\n"
    assert false_samples(block, figures) == ["node.series"]
    with pytest.raises(KeyError):
        rewritten("1<!-- figure: of.nothing -->", figures)


def test_both_readmes_quote_the_same_figures() -> None:
    first, second = ([found["name"] for found in MARK.finditer((ROOT / name).read_text())] for name in READMES)
    assert first == second != []


def test_both_readmes_show_the_same_commands_and_samples() -> None:
    def blocks(name: str) -> list[str]:
        text = (ROOT / name).read_text()
        return [re.sub(r" +# .*", "", block) for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL)]

    first, second = map(blocks, READMES)
    assert first == second != []


@pytest.mark.parametrize("name", READMES)
def test_the_sample_names_the_methods_that_the_demo_has(name: str, node: Snapshot) -> None:
    sample = (ROOT / name).read_text().partition("$ podgpu snapshot --url")[2].partition("```")[0]
    shown = {found["name"]: found["method"] for found in ROW.finditer(sample)}
    tenants = [tenant for card in node.cards for tenant in card.tenants]
    methods = {
        "/".join((tenant.container.namespace, tenant.container.pod, tenant.container.container)): (
            "idle" if tenant.holding and tenant.holding.state == "idle" else tenant.booking.method
        )
        for tenant in tenants
    }
    assert len(shown) == 11 and shown == {pod: methods[pod] for pod in shown}
