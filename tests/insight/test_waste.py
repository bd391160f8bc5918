"""Waste with a name."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from podgpu import numbers
from podgpu.insight import reconclude
from podgpu.insight.idle import IdleRow, idle_pods
from podgpu.model import Cluster, Pod
from tests.insight.test_idle import HOUR, NOW, PRICED, SETTINGS, cluster, tenant

DAY = 24 * HOUR


def of_teams(found: Cluster, teams: dict[str, str]) -> Cluster:
    """The pods with the label of a team, by their names."""
    (node,) = found.nodes
    assert node.snapshot is not None
    pods = tuple(
        Pod(namespace="ml", name=name, uid=f"uid-{name}", labels={"team": team}) for name, team in teams.items()
    )
    snapshot = replace(node.snapshot, pods=pods, insight=None)
    return reconclude(replace(found, nodes=(replace(node, snapshot=snapshot),)), PRICED)


def test_a_namespace_is_named_with_what_it_holds_costs_and_since_when() -> None:
    found = cluster(("0", [tenant("a-0", share=0.5, held=2 * HOUR)]), settings=PRICED)
    (row,) = idle_pods(found).waste
    began = numbers.since(NOW - 2 * HOUR, NOW)
    assert row.text == f"ml holds 0.5 GPU without using it, 2.00 EUR an hour, since {began}."
    assert (row.by, row.name, row.gpus, row.pods, row.cost_per_hour) == ("namespace", "ml", 0.5, 1, 2.0)
    assert row.message.startswith(row.text)
    assert "ml/a-0" in row.message and "podgpu why ml/a-0" in row.message


def test_several_pods_of_a_team_are_added_up_and_the_first_to_idle_is_named() -> None:
    tenants = [tenant("a-0", share=0.5, held=2 * DAY), tenant("b-0", share=0.25, held=2 * HOUR)]
    found = of_teams(cluster(("0", tenants), ("1", [tenant("c-0", held=3 * HOUR)])), {"a-0": "vision", "b-0": "vision"})
    team, rest = sorted(idle_pods(found).waste, key=lambda row: row.by, reverse=True)
    began = numbers.since(NOW - 2 * DAY, NOW)
    assert team.text == f"Team vision holds 0.75 GPU without using it, 3.00 EUR an hour, the first since {began}."
    assert rest.text.startswith("ml holds 1 GPU without using it, 4.00 EUR an hour, since ")
    assert team.gpus + rest.gpus == sum(row.held_gpus or 0 for row in idle_pods(found).rows)


def test_all_rows_are_added_up_in_a_sentence() -> None:
    both = [tenant("a-0", share=0.5, held=2 * HOUR), tenant("b-0", share=0.25, held=4 * HOUR)]
    found = idle_pods(cluster(("0", both), settings=PRICED))
    assert found.in_all("EUR") == "In all, 2 pods hold 0.75 GPU without use, 8.00 EUR so far."
    assert found.in_all("") == "In all, 2 pods hold 0.75 GPU without use."
    unsized = IdleRow(namespace="ml", pod="c-0")
    assert replace(found, rows=(*found.rows, unsized)).in_all("EUR") == (
        "In all, 3 pods hold at least 0.75 GPU without use, at least 8.00 EUR so far."
    )
    assert replace(found, rows=(unsized,)).in_all("EUR") == "In all, 1 pod holds shares that are not known without use."
    assert replace(found, rows=()).in_all("EUR") == ""


def test_the_message_lists_each_pod_with_its_node_its_gpus_and_since_when_it_uses_nothing() -> None:
    single, double = tenant("a-0", held=2 * HOUR), tenant("b-0", held=3 * HOUR)
    (row,) = idle_pods(cluster(("0", [single]), ("1", [double]), ("2", [double]))).waste
    assert row.message.splitlines()[2:4] == [
        f"- ml/a-0 on alpha, GPU 0: not used since {numbers.moment(NOW - 2 * HOUR)}, it has no process on the card",
        f"- ml/b-0 on alpha, 2 GPUs: not used since {numbers.moment(NOW - 3 * HOUR)}, it has no process on the card",
    ]


def test_the_message_lists_ten_pods_and_counts_the_others() -> None:
    pods = [tenant(f"a-{number}", share=0.05) for number in range(12)]
    (row,) = idle_pods(cluster(("0", pods))).waste
    listed = [line for line in row.message.splitlines() if line.startswith("- ")]
    assert (len(listed), listed[-1]) == (11, "- and 2 more")
    (row,) = idle_pods(cluster(("0", pods[:10]))).waste
    assert row.message.count("- ml/") == 10 and " more" not in row.message


def test_two_gpus_are_them_and_a_part_of_one_is_it() -> None:
    (whole,) = _problems(cluster(("0", [tenant("a-0")]), ("1", [tenant("a-0")])))
    assert whole.startswith("ml/a-0 holds 2 GPUs on GPUs 0, 1 and has not used them for 10 h")
    (part,) = _problems(cluster(("0", [tenant("a-0", share=0.5)]), ("1", [tenant("a-0", share=0.5)])))
    assert part.startswith("ml/a-0 holds 1 GPU on GPUs 0, 1 and has not used it for 10 h")


def _problems(found: Cluster) -> list[str]:
    assert found.insight
    return [problem.text for problem in found.insight.problems]


def test_without_prices_no_money_is_named_and_who_works_wastes_nothing() -> None:
    tenants = [tenant("a-0", held=3 * HOUR), tenant("b-0", used=60.0, processes=1)]
    (row,) = idle_pods(cluster(("0", tenants), settings=SETTINGS)).waste
    assert "EUR" not in row.text and "b-0" not in row.message


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("2026-11-16 08:37", "08:37 UTC"),
        ("2026-11-15 23:59", "Sunday"),
        ("2026-11-12 12:00", "Thursday"),
        ("2026-11-10 00:00", "Tuesday"),
        ("2026-11-09 23:59", "9 Nov"),
        ("2026-11-17 08:00", "17 Nov"),
        ("2025-12-31 08:00", "31 Dec 2025"),
    ],
)
def test_when_it_began_is_written_as_it_is_said(at: str, words: str) -> None:
    began, now = (
        datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=UTC).timestamp() for text in (at, "2026-11-16 10:00")
    )
    assert numbers.since(began, now) == words
