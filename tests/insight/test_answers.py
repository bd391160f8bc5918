"""The three questions of a first look, each answered in a line, and what the answers are made of."""

from msgspec.structs import replace

from podgpu.insight import conclude_cluster, conclude_node, concluded, ensured, reconclude, with_answers
from podgpu.insight.idle import idle_pods
from podgpu.insight.problem_rows import problem_rows
from podgpu.insight.waste import MOST_LISTED
from podgpu.model import Answers, Cluster, ClusterNode, Fault, Insight, Snapshot
from podgpu.views.cluster.json import slim
from tests.insight.test_idle import HOUR, PRICED, SETTINGS, cluster, tenant
from tests.insight.test_waste import DAY, of_teams


def insight_of(found: Cluster) -> Insight:
    assert found.insight is not None
    return found.insight


def answers_of(found: Cluster) -> Answers:
    answers = insight_of(found).answers
    assert answers is not None
    return answers


def snapshot_of(found: Cluster) -> Snapshot:
    (node,) = found.nodes
    assert node.snapshot is not None
    return node.snapshot


def many(found: Cluster, number: int) -> Cluster:
    """The node many times, as a cluster reads it: in the slim form."""
    snapshot = slim(snapshot_of(found))
    nodes = [
        ClusterNode(name=f"n-{at}", state="fresh", snapshot=replace(snapshot, node=f"n-{at}")) for at in range(number)
    ]
    return conclude_cluster(replace(found, nodes=tuple(conclude_node(node, PRICED) for node in nodes)), PRICED)


def test_a_node_says_how_much_is_wasted_what_that_costs_and_by_whom_most() -> None:
    found = cluster(("0", [tenant("a-0", held=2 * DAY)]), ("1", [tenant("b-0", share=0.5)]), settings=PRICED)
    found = of_teams(found, {"a-0": "vision"})
    assert answers_of(found).waste == "1.5 GPUs, 6.00 EUR an hour, most by team vision"
    assert answers_of(found).wrong == "2 warnings"
    assert insight_of(found).waste == tuple(replace(row, cost=None) for row in idle_pods(found).waste)


def test_without_waste_and_without_prices_no_number_is_made_up() -> None:
    found = cluster(("0", [tenant("a-0", used=60.0, processes=1)]), settings=SETTINGS)
    assert answers_of(found).waste == "no GPU is held without use"
    assert answers_of(found).wrong == "nothing wrong is known"
    assert insight_of(found).waste == ()


def test_that_nobody_wastes_is_not_said_of_nodes_that_are_dark() -> None:
    found = cluster(("0", [tenant("a-0", used=60.0, processes=1)]), settings=SETTINGS)
    silent = ClusterNode(name="n-1", state="failed", reason="timeout", dark=True)
    found = conclude_cluster(replace(found, nodes=(*found.nodes, silent)), SETTINGS)
    assert answers_of(found).waste == "no GPU is held without use, 1 node dark"
    assert answers_of(found).use.endswith(", 1 node dark")


def test_the_waste_of_a_cluster_is_that_of_its_nodes_in_the_words_of_podgpu_idle() -> None:
    found = many(cluster(("0", [tenant("a-0", held=2 * DAY), tenant("b-0", held=3 * HOUR)]), settings=PRICED), 12)
    (row,), (wanted,) = insight_of(found).waste or (), idle_pods(found).waste
    assert (row.gpus, row.pods, row.text, row.message) == (24.0, 24, wanted.text, wanted.message)
    assert row.message.count("- ml/") == 10 and "- and 14 more" in row.message
    assert answers_of(found).waste == "24 GPUs, 96.00 EUR an hour, by ml"


def test_the_slim_form_of_a_node_has_numbers_and_no_sentences() -> None:
    found = cluster(("0", [tenant("a-0")]), settings=PRICED)
    thin = slim(snapshot_of(found))
    assert concluded(thin, PRICED) is thin, "nothing is concluded again for want of them"
    assert thin.insight is not None and thin.insight.answers is None
    assert [(row.gpus, row.text, row.message) for row in thin.insight.waste or ()] == [(1.0, "", "")]


def test_who_shows_a_slim_form_alone_writes_the_sentences_anew() -> None:
    whole = snapshot_of(cluster(("0", [tenant("a-0")]), settings=PRICED))
    assert with_answers(slim(whole)).insight == whole.insight
    assert with_answers(whole) is whole


def test_a_cluster_lists_those_who_waste_most_and_counts_the_others() -> None:
    teams = {f"p-{number}": f"team-{number:02}" for number in range(MOST_LISTED + 3)}
    cards = [(str(at), [tenant(name, share=1.0 if at else 0.5)]) for at, name in enumerate(teams)]
    found = insight_of(many(of_teams(cluster(*cards, settings=PRICED), teams), 2))
    assert found.waste is not None and (len(found.waste), found.more_waste) == (MOST_LISTED, 3)
    assert "team-00" not in [row.name for row in found.waste], "it holds half as much"


def test_an_agent_of_an_older_version_is_judged_by_whoever_reads_it() -> None:
    found = snapshot_of(cluster(("0", [tenant("a-0")]), settings=PRICED))
    assert found.insight is not None
    old = concluded(replace(found, insight=replace(found.insight, waste=None)), PRICED)
    assert old.insight is not None and [row.name for row in old.insight.waste or ()] == ["ml"]
    kept = ClusterNode(name="n", state="fresh", snapshot=replace(found, insight=replace(found.insight, waste=None)))
    told = insight_of(ensured(Cluster(taken_at=found.taken_at, version="1", nodes=(kept,)), PRICED))
    assert [(row.name, row.gpus) for row in told.waste or ()] == [("ml", 1.0)], "as in a recording"


def test_what_an_agent_says_of_itself_need_not_fit_together() -> None:
    found = cluster(("0", [tenant("a-0")]), settings=PRICED)
    snapshot = snapshot_of(found)
    assert snapshot.insight is not None and snapshot.insight.waste
    lies = tuple(replace(row, name="nobody") for row in snapshot.insight.waste)
    lying = replace(snapshot, insight=replace(snapshot.insight, waste=lies))
    row = ClusterNode(name="n", state="fresh", snapshot=lying)
    told = insight_of(conclude_cluster(replace(found, nodes=(row,)), PRICED)).waste or ()
    assert [(row.name, "podgpu why" in row.message) for row in told] == [("nobody", False)]


def test_a_dark_node_is_said_and_wastes_nothing_that_is_known() -> None:
    found = many(cluster(("0", [tenant("a-0")]), settings=PRICED), 3)
    first, *others = found.nodes
    dark = replace(first, state="stale", reason="timeout")
    found = reconclude(replace(found, nodes=(dark, *others)), PRICED)
    assert answers_of(found).wrong == "1 critical, 2 warnings, 1 node dark"
    assert answers_of(found).waste == "2 GPUs, 8.00 EUR an hour, by ml, not known of 1 pod"
    assert answers_of(found).use.endswith("1 GPU dark")
    all_dark = tuple(replace(node, state="stale", reason="timeout") for node in found.nodes)
    none = answers_of(reconclude(replace(found, nodes=all_dark), PRICED))
    assert (none.waste, none.use) == ("not known of 3 pods", "busy time not known, 3 GPUs dark")


def test_every_problem_that_a_document_only_counts_has_a_row() -> None:
    cards = [(str(at), [tenant(f"a-{at}")]) for at in range(5)]
    found = many(cluster(*cards, settings=PRICED), 4)
    (problem,) = insight_of(found).problems
    rows = problem_rows(found, found.nodes)
    assert len(rows) == 1 + problem.more == 20
    assert rows[0] == replace(problem, more=0)
    assert len({(row.node, row.pod) for row in rows}) == 20


def test_problems_that_cannot_be_found_again_stay_counted() -> None:
    found = many(cluster(*[(str(at), [tenant(f"a-{at}")]) for at in range(5)], settings=PRICED), 2)
    gone = tuple(replace(node, snapshot=None, insight=node.concluded) for node in found.nodes)
    (problem,) = insight_of(found).problems
    rows = problem_rows(found, gone)
    assert sum(1 + row.more for row in rows) == 1 + problem.more
    assert len(rows) == 2


def test_problems_of_dark_nodes_keep_their_age_and_lost_cards_come_first() -> None:
    found = many(cluster(("0", [tenant("a-0")]), ("1", [tenant("b-0")]), ("2", [tenant("c-0")]), settings=PRICED), 2)
    lost, other = found.nodes
    assert lost.snapshot is not None
    card = replace(lost.snapshot.cards[0], fault=Fault(reason="lost"))
    broken = replace(lost, snapshot=replace(lost.snapshot, cards=(card, *lost.snapshot.cards[1:]), insight=None))
    found = reconclude(replace(found, nodes=(broken, other)), PRICED)
    rows = problem_rows(found, found.nodes)
    assert (rows[0].kind, rows[0].node) == ("gpu_unreadable", "n-0")
    assert sum(row.kind == "idle" for row in rows) == 5
