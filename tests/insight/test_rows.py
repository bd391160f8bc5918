"""The cluster by pod, workload, namespace, GPU and node."""

import pytest
from msgspec.structs import replace

from podgpu import numbers
from podgpu.errors import UserError
from podgpu.insight import reconclude
from podgpu.insight.rows import VIEWS, SummaryRow
from podgpu.insight.selection import EVERYTHING, PodSelection, label_tests
from podgpu.model import UNKNOWN, Band, Cluster, ClusterNode, Fault
from tests.cluster.nodes import card, fresh, tenant
from tests.tree import SETTINGS
from tests.views.quirks import IDLER, LLAMA, SNAPSHOT


def node(name: str) -> ClusterNode:
    return ClusterNode(name=name, state="fresh", origin="agent", snapshot=replace(SNAPSHOT, node=name))


ONE = Cluster(taken_at=SNAPSHOT.taken_at, version="1", nodes=(node("a"),))
TWO = replace(ONE, nodes=(node("a"), node("b")))


def rows(view: str, cluster: Cluster = ONE, chosen: PodSelection = EVERYTHING) -> list[SummaryRow]:
    return [entry.row for entry in VIEWS[view](cluster, chosen)]


def pod(name: str, cluster: Cluster = ONE) -> SummaryRow:
    return next(row for row in rows("pods", cluster) if row.name == name)


def test_a_pod_has_what_its_tenants_have_together() -> None:
    tenants = [tenant for card in SNAPSHOT.cards for tenant in card.tenants if tenant.container == LLAMA]
    found = pod("llama-0")
    assert found.memory_used_bytes == sum(held.booking.memory_bytes or 0 for held in tenants)
    bands = [held.booking.band for held in tenants if held.booking.band]
    assert found.busy_gpus == pytest.approx(sum(band.ratio(band.booked_us) for band in bands))
    assert found.likely_most_busy_gpus == pytest.approx(sum(band.ratio(band.likely_most_us) for band in bands))
    assert found.certainty == "estimated"
    assert (found.namespace, found.node) == ("ml", "a")


def test_what_is_unknown_is_absent_and_never_zero() -> None:
    assert pod(IDLER.pod).memory_used_bytes is None
    (stuck,) = [row for row in rows("gpus") if row.state == "timeout"]
    assert (stuck.use_ratio, stuck.memory_used_bytes, stuck.power_watts) == (None, None, None)


def test_a_sum_has_the_shares_that_are_known_and_counts_the_others() -> None:
    unsized = tenant("ml/b", None)
    unsized = replace(unsized, claims=(replace(unsized.claims[0], share=0.0),))
    cluster = Cluster(taken_at=1.0, version="1", nodes=(fresh("n", card("GPU-1", tenant("ml/a", 0.25), unsized)),))
    assert {row.name: (row.held_gpus, row.unknown_shares) for row in rows("pods", cluster)} == {
        "a": (0.25, 0),
        "b": (None, 1),
    }
    groups = [row for view in ("namespaces", "nodes", "gpus") for row in rows(view, cluster)]
    assert [(row.held_gpus, row.unknown_shares) for row in groups] == [(0.25, 1)] * 3


def test_a_card_whose_number_is_not_known_is_not_minus_one() -> None:
    """Without an agent, Kubernetes knows that a pod holds a GPU, and not which one."""
    bare = card("GPU-1", tenant("ml/a"))
    cluster = Cluster(
        taken_at=1.0, version="1", nodes=(fresh("n", replace(bare, gpu=replace(bare.gpu, index=UNKNOWN))),)
    )
    assert [row.gpus for view in ("pods", "gpus") for row in rows(view, cluster)] == [("?",), ("?",)]
    assert rows("gpus", cluster)[0].name == "n ?"


def test_cards_without_a_name_are_counted_and_listed_one_by_one() -> None:
    bare = card("GPU-1", tenant("ml/a"))
    nameless = replace(bare, gpu=replace(bare.gpu, uuid="", index=UNKNOWN))
    cluster = Cluster(taken_at=1.0, version="1", nodes=(fresh("n", nameless, nameless),))
    assert len({item.key for item in VIEWS["gpus"](cluster, EVERYTHING)}) == 2
    assert [row.cards for row in rows("pods", cluster)] == [2]


def test_a_pod_that_two_nodes_claim_is_two_rows() -> None:
    found = [row.node for row in rows("pods", TWO) if row.title == "ml/llama-0" and row.memory_used_bytes]
    assert sorted(found) == ["a", "b"]


def test_a_label_has_a_row_for_each_value_and_one_for_those_without_it() -> None:
    found = rows("labels", TWO)
    labels = {row.kind for row in found}
    assert labels == {name for listed in SNAPSHOT.pods for name in listed.labels} != set()
    held = sum(row.held_gpus or 0 for row in rows("nodes", TWO))
    for label in labels:
        own = [row for row in found if row.kind == label]
        assert sum(row.held_gpus or 0 for row in own) == pytest.approx(held)
        assert f"without {label}" in [row.name for row in own]


def test_namespaces_and_nodes_add_up_to_the_same() -> None:
    held = sum(row.held_gpus or 0 for row in rows("nodes", TWO))
    assert held == pytest.approx(sum(row.held_gpus or 0 for row in rows("namespaces", TWO)))
    assert held == pytest.approx(sum(row.held_gpus or 0 for row in rows("workloads", TWO)))
    assert held == pytest.approx(sum(row.held_gpus or 0 for row in rows("gpus", TWO)))


def test_a_pod_without_a_process_is_idle_and_one_that_may_have_one_is_not() -> None:
    (idle,) = [row for row in rows("pods") if row.state == "idle"]
    assert idle.idle_pods and idle.namespace == "<b>"
    assert pod(IDLER.pod).state == "unknown" and not pod(IDLER.pod).idle_pods


def test_one_namespace_one_node_or_some_labels() -> None:
    assert {row.namespace for row in rows("pods", TWO, PodSelection("ml"))} == {"ml"}
    assert {row.node for row in rows("pods", TWO, PodSelection(node="b"))} == {"b"}
    assert [row.name for row in rows("nodes", TWO, PodSelection(node="b"))] == ["b"]
    labelled = {pod.name: pod.labels for pod in SNAPSHOT.pods if pod.labels}
    (key, value), *_ = next(iter(labelled.values())).items()
    found = rows("pods", ONE, PodSelection("", "", label_tests(f"{key}={value}")))
    assert found and all(labelled[row.name][key] == value for row in found)


def test_a_node_that_gives_no_numbers_is_there_for_who_asks_for_it() -> None:
    silent = replace(TWO, nodes=(*TWO.nodes, ClusterNode(name="c", state="failed", reason="deadline")))
    assert [row.state for row in rows("nodes", silent, PodSelection(node="c"))] == ["dark"]
    assert rows("nodes", silent, PodSelection(namespace="nosuch", node="c")) == []


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("team=a", True),
        ("team==a,app", True),
        ("team!=a", False),
        ("team in (a, b),!gone", True),
        ("team notin (a)", False),
        ("app=", True),
        ("gone", False),
    ],
)
def test_selectors_are_kubectl_s(selector: str, expected: bool) -> None:
    labels = {"team": "a", "app": ""}
    assert all(test(labels) for test in label_tests(selector)) == expected


@pytest.mark.parametrize("selector", ["a b", "=x", "a in b", "!a=b"])
def test_another_selector_is_refused_with_an_example(selector: str) -> None:
    with pytest.raises(UserError, match="write it like team=search"):
        label_tests(selector)


def test_a_thousand_silent_nodes_are_one_problem() -> None:
    silent = tuple(ClusterNode(name=f"n{number}", state="failed", reason="deadline") for number in range(1000))
    found = reconclude(replace(ONE, nodes=silent), SETTINGS)
    assert found.insight
    (problem,) = found.insight.problems
    said = "1,000 of 1,000 nodes are dark: n0, n1, n2 and 997 more. Why: 1,000 deadline."
    assert (problem.text, problem.more, problem.severity) == (said, 0, "critical")


def test_a_number_near_the_middle_is_written_as_its_tenant_s() -> None:
    """20.499996% is 20%: rounded to 20.5% first, it would be 21%."""
    alone = tenant("ml/a")
    busy = replace(alone, booking=replace(alone.booking, sm_ratio=0.20499996, power_watts=99.9499999))
    cluster = Cluster(taken_at=1.0, version="1", nodes=(fresh("n", card("GPU-1", busy)),))
    (row,) = rows("pods", cluster)
    assert (numbers.percent(row.use.ratio), numbers.watts(row.power_watts)) == ("20%", "100 W")


@pytest.mark.parametrize("booked", [0, 40])
def test_the_bounds_are_of_the_same_cards_as_the_number(booked: int) -> None:
    """One of the pod's two cards is lost: the other one alone is known."""
    band = Band(
        elapsed_us=100,
        booked_us=booked,
        least_us=0,
        most_us=60,
        booked_mj=0,
        least_mj=0,
        most_mj=0,
        certainty="bounded",
    )
    held, beside = tenant("ml/a"), tenant("ml/b")
    others = replace(band, booked_us=60 - booked)
    known = card(
        "GPU-1",
        replace(held, booking=replace(held.booking, band=band)),
        replace(beside, booking=replace(beside.booking, band=others)),
    )
    assert known.balance
    known = replace(known, balance=replace(known.balance, band=replace(band, booked_us=60)))
    lost = card("GPU-2", held, fault=Fault(reason="lost"))
    cluster = Cluster(taken_at=1.0, version="1", nodes=(fresh("n", known, lost),))
    row = pod("a", cluster)
    assert (row.cards, row.known_cards) == (2, 1)
    assert (row.use.ratio, row.use.least, row.use.most) == (booked / 100, 0.0, 0.6)
