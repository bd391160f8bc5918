"""All problems one by one. A document lists the first of many alike and counts the others; here they have rows."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from podgpu.insight import commands, dark, settings_of
from podgpu.insight.problems import all_of_snapshot, of_cluster_itself, rank
from podgpu.insight.tenants import InsightSettings
from podgpu.model import Cluster, ClusterNode, Insight, Problem, Snapshot
from podgpu.model.kube import grouped

MOST_ALIKE = 1000  # rows of one kind and severity; the last of them says how many more there are


def problem_rows(cluster: Cluster, nodes: Iterable[ClusterNode]) -> list[Problem]:
    """List the members of every group of problems, in the order of the groups. `nodes` are those of the cluster."""
    insight = cluster.insight
    if insight is None or insight.dark is None:
        return []
    settings, found, remembered = settings_of(insight), list(of_cluster_itself(cluster)), list[Problem]()
    found = [problem for problem in insight.problems if problem.kind == dark.KIND] + found
    for node in nodes:
        of_node = node.concluded
        if of_node is None:
            continue
        own = replace(of_node, problems=tuple(_members(of_node, node.snapshot, settings)))
        if node.state == "fresh":
            found += _with_commands([replace(problem, node=node.name) for problem in own.problems], node)
        elif node.is_dark:
            remembered += _with_commands(dark.remembered(node, own, cluster.taken_at), node)
    groups = grouped([*found, *remembered], rank)
    return [problem for _, alike in sorted(groups.items(), key=lambda group: group[0]) for problem in _bounded(alike)]


def keyed_problems(cluster: Cluster, nodes: Iterable[ClusterNode]) -> list[tuple[str, Problem]]:
    """List them with a key each, by what they are about: their texts may change."""
    seen = Counter[str]()
    keyed = []
    for problem in problem_rows(cluster, nodes):
        about = " ".join((problem.kind, problem.severity, problem.node, problem.uuid, problem.pod))
        seen[about] += 1
        keyed.append((f"{about} {seen[about]}", problem))
    return keyed


def _with_commands(problems: Iterable[Problem], node: ClusterNode) -> list[Problem]:
    return [replace(problem, command=commands.of_problem(problem, node)) for problem in problems]


def _members(insight: Insight, snapshot: Snapshot | None, settings: InsightSettings) -> Iterator[Problem]:
    """Find the problems again that a node only counted. Where that is not possible, they stay counted."""
    if snapshot is None or not any(problem.more for problem in insight.problems):
        yield from insight.problems
        return
    again = grouped(all_of_snapshot(snapshot, settings, has_books=False), rank)
    for group, alike in grouped(insight.problems, rank).items():
        members = again.get(group, [])
        yield from members if len(members) == _number(alike) else alike


def _number(problems: Iterable[Problem]) -> int:
    return sum(1 + problem.more for problem in problems)


def _bounded(alike: Sequence[Problem]) -> Sequence[Problem]:
    if len(alike) <= MOST_ALIKE:
        return alike
    last, left = alike[MOST_ALIKE - 1], alike[MOST_ALIKE:]
    return [*alike[: MOST_ALIKE - 1], replace(last, more=last.more + _number(left))]
