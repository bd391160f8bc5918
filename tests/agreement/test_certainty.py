"""A surface that calls an estimate a bound, or adds up bounds that do not add up, is found."""

import json as plain_json
import re
from collections.abc import Callable

import pytest
import pytest_asyncio
from msgspec.structs import replace

from podgpu.cli._top.keys import TopState
from podgpu.cli._top.layout import render
from podgpu.cli._top.rows import TopRows
from podgpu.insight.selection import EVERYTHING
from podgpu.model import Cluster, Snapshot, Use
from podgpu.views import exposition, json, native
from podgpu.views.exposition import Format
from podgpu.views.table import table
from podgpu.views.why import why
from tests.agreement import surfaces
from tests.agreement.cases import held_still
from tests.agreement.certainty import ESTIMATED, WORDS, of_row, of_text, recomputed, together, words
from tests.agreement.evidence import WIDTH, facts_of_evidence
from tests.agreement.facts import Facts, compared
from tests.agreement.series import facts_of_page
from tests.agreement.tables import facts_of_table

pytestmark = pytest.mark.asyncio(loop_scope="module")

POD, NAMESPACE, WORKLOAD = "vision/camera-0", "namespaces vision", "workloads vision/camera"
Lie = Callable[[Cluster], Facts]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def demo() -> Cluster:
    (cluster,) = [cluster async for _, cluster in held_still(["demo"])]
    return cluster


def snapshot(cluster: Cluster) -> Snapshot:
    (node,) = cluster.nodes
    assert node.snapshot
    return node.snapshot


def page(cluster: Cluster) -> str:
    return exposition.render(native.families(snapshot(cluster), {}), Format.TEXT).decode()


def evidence(cluster: Cluster) -> str:
    namespace, _, name = POD.partition("/")
    return why(snapshot(cluster), namespace, name, WIDTH) or ""


def bounded(text: str) -> str:
    """Without the mark of a likely range."""
    return text.replace("(~", "(")


def mistaken(page: str) -> str:
    """Likely seconds in the family of those that are proven."""
    lines = [line for line in page.splitlines() if "_busy_bound_" not in line]
    return re.sub("busy_likely(.*)end=", r"busy_bound\1bound=", "\n".join(lines))


LIES: dict[str, tuple[str, str, Lie]] = {
    "table": (
        "demo snapshot",
        f"{POD} certainty",
        lambda cluster: facts_of_table(bounded(table(snapshot(cluster), WIDTH, colour=False))),
    ),
    "top pods": (
        "top pods",
        f"{POD} certainty",
        lambda cluster: surfaces.facts_of_rows(bounded(surfaces.printed(cluster, "pods")), "pods"),
    ),
    "the table's legend": (
        "demo snapshot",
        "(~12–34)",
        lambda cluster: facts_of_table(
            table(snapshot(cluster), WIDTH, colour=False).replace("(~12–34): likely, not", "(~12–34):")
        ),
    ),
    "top namespaces": (
        "top namespaces",
        f"{NAMESPACE} certainty",
        lambda cluster: surfaces.facts_of_rows(bounded(surfaces.printed(cluster, "namespaces")), "namespaces"),
    ),
    "top workloads": (
        "top workloads",
        f"{WORKLOAD} certainty",
        lambda cluster: surfaces.facts_of_rows(bounded(surfaces.printed(cluster, "workloads")), "workloads"),
    ),
    "why, the range": (
        "demo why",
        f"{POD} certainty",
        lambda cluster: facts_of_evidence(POD, bounded(evidence(cluster))),
    ),
    "why, the word": (
        "demo why",
        f"{POD} certainty",
        lambda cluster: facts_of_evidence(POD, evidence(cluster).replace(ESTIMATED, "bounded")),
    ),
    "why, what is proven": (
        "demo why",
        f"{POD} proven",
        lambda cluster: facts_of_evidence(POD, evidence(cluster).replace("between 0%", "between 4%")),
    ),
    "label": (
        "demo native page",
        f"{POD} certainty",
        lambda cluster: facts_of_page(page(cluster).replace('certainty="estimated"', 'certainty="bounded"')),
    ),
    "family": ("demo native page", f"{POD} proven seconds", lambda cluster: facts_of_page(mistaken(page(cluster)))),
    "JSON": (
        "demo JSON",
        f"{POD} certainty",
        lambda cluster: surfaces.facts_of_document(
            json.encode(snapshot(cluster)).replace(b'"certainty":"estimated"', b'"certainty":"bounded"')
        ),
    ),
}


async def test_the_demo_has_all_three_words_and_every_kind_of_surface_says_them(demo: Cluster) -> None:
    lines = {line.fact: line for line in compared(surfaces.all_of(demo))}
    said = {fact: line for fact, line in lines.items() if fact.endswith(" certainty")}
    assert {word for line in said.values() for word in line.said.values()} == {"exact", "bounded", ESTIMATED}
    assert not [line for line in lines.values() if line.differs]
    every = ("cluster JSON", "top pods", "demo JSON", "demo native page", "demo OTLP", "demo snapshot", "demo why")
    assert set(said[f"{POD} certainty"].said) == set(every)
    assert set(lines[f"{POD} proven"].said) == {"cluster JSON", "demo JSON", "demo why"}
    for group, view in ((NAMESPACE, "namespaces"), (WORKLOAD, "workloads")):
        assert set(said[f"{group} certainty"].said) == {"recomputed groups", f"top {view}", f"rows by {view}"}


@pytest.mark.parametrize("name", LIES)
async def test_a_surface_that_calls_an_estimate_a_bound_is_found(demo: Cluster, name: str) -> None:
    surface, fact, lie = LIES[name]
    said = surfaces.all_of(demo)
    assert fact in said[surface]
    differing = [line.fact for line in compared(said | {surface: lie(demo)}) if line.differs]
    assert fact in differing


async def test_the_sum_of_the_bounds_of_pods_is_not_the_bound_of_their_sum(demo: Cluster) -> None:
    pods, rows = (plain_json.loads(json.rows_document(demo, by))["rows"] for by in ("pods", "namespaces"))
    (row,) = [row for row in rows if row["name"] == "assist"]
    own = [pod for pod in pods if pod["namespace"] == "assist"]
    added = sum(pod.get("most_busy_gpus", pod["busy_gpus"]) for pod in own) / row["known_cards"]
    assert added > row["use"]["most"] + 0.1
    lie = of_row(row | {"use": row["use"] | {"most": added}}, "namespaces")
    told = compared(surfaces.all_of(demo) | {"rows by namespaces": lie})
    assert [line.fact for line in told if line.differs] == ["namespaces assist proven"]


async def test_every_namespace_with_a_known_use_is_recomputed(demo: Cluster) -> None:
    rows = plain_json.loads(json.rows_document(demo, "namespaces"))["rows"]
    assert {f"namespaces {row['name']} use" for row in rows} <= recomputed(demo).keys()


async def test_no_range_is_cut(demo: Cluster) -> None:
    (node,) = demo.nodes
    full = Use(0.998, 0.0, 1.0, 100.0, 0.95, 1.0, ESTIMATED)
    cards = tuple(
        replace(card, tenants=tuple(replace(tenant, use=full) for tenant in card.tenants))
        for card in snapshot(demo).cards
    )
    cluster = replace(demo, nodes=(replace(node, snapshot=replace(snapshot(demo), cards=cards)),))
    top = render(TopRows(cluster, EVERYTHING), TopState(), 80, 40).lines
    assert "100% (~95–100)" in table(snapshot(cluster), 80, colour=False)
    assert "100% (~95–100)" in "".join(part for line in top for part, _ in line)


def use(ratio: float, *ends: float) -> dict[str, dict[str, float | str]]:
    return {"use": {"ratio": ratio, "certainty": ESTIMATED, **dict(zip(("least", "most"), ends, strict=True))}}


async def test_a_group_has_what_others_cannot_have_had() -> None:
    first, second, other = use(0.2, 0.0, 0.42), use(0.1, 0.0, 0.42), use(0.12, 0.05, 0.15)
    card = {"use": {"ratio": 0.42}, "tenants": [first, second, other], "rest": [], "ended": []}
    found = together(card, [first, second])
    assert found and list(found.proven) == pytest.approx([0.27, 0.37])
    whole = together(card, [first, second, other])
    assert whole and (whole.proven, whole.certainty) == ((whole.ratio, whole.ratio), "exact")
    ended = together(card | {"ended": [{}]}, [first, second])
    assert ended and list(ended.proven) == pytest.approx([0.0, 0.37])


async def test_docs_and_page_define_the_same_three_words() -> None:
    (line,) = compared(words())
    assert line.fact == WORDS
    assert not line.differs, line
    assert len(line.said) >= 5


@pytest.mark.parametrize(
    ("shown", "word"), [("23% (~12–34)", ESTIMATED), ("23% (12–34)", "bounded"), ("23%", None), ("-", None)]
)
async def test_a_range_says_how_sure_it_is(shown: str, word: str | None) -> None:
    assert of_text("ml/a", shown).get("ml/a certainty") == word
