"""What is wrong, most pressing first. A kind of problem is a row and a function in the module of its topic."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from podgpu.insight import card_problems, dark, holder_problems, part_problems
from podgpu.insight.problem_kind import ProblemKind
from podgpu.insight.tenants import InsightSettings, cards_of_snapshot
from podgpu.model import SEVERITIES, Cluster, Dark, Problem, Snapshot
from podgpu.model.kube import grouped

KINDS: tuple[ProblemKind, ...] = tuple(
    sorted(
        (*dark.KINDS, *card_problems.KINDS, *part_problems.KINDS, *holder_problems.KINDS), key=lambda kind: kind.rank
    )
)
_RANKS: Mapping[str, int] = {kind.name: kind.rank for kind in KINDS}
_LAST = 1000  # a kind of another version
_ALIKE = 2  # of one kind, up to so many are listed one by one


def all_of_snapshot(snapshot: Snapshot, settings: InsightSettings, *, has_books: bool) -> list[Problem]:
    """List the problems of a node, one by one. `has_books`: whether everything that was booked is in the snapshot."""
    on_cards = cards_of_snapshot(snapshot)
    found: list[Problem] = []
    for kind in KINDS:
        if kind.of_card is not None and (has_books or kind.name != "books"):
            for on in on_cards:
                found += kind.of_card(on)
        if kind.of_snapshot is not None:
            found += kind.of_snapshot(snapshot, settings)
    return found


def of_cluster(cluster: Cluster, unread: Dark) -> list[Problem]:
    """List those of all nodes and of the cluster itself. Those of dark nodes stay, with their age, after the others."""
    found: list[Problem] = [*dark.problems(cluster, unread), *of_cluster_itself(cluster)]
    for node in cluster.nodes:
        if node.state == "fresh" and node.concluded is not None:
            found += [
                problem if problem.node == node.name else replace(problem, node=node.name)
                for problem in node.concluded.problems
            ]
    for node in cluster.nodes:
        if node.is_dark:
            found += dark.remembered(node, node.concluded, cluster.taken_at)
    return folded(found)


def of_cluster_itself(cluster: Cluster) -> Iterator[Problem]:
    """List those of no node, but for dark ones."""
    for kind in KINDS:
        if kind.of_cluster is not None:
            yield from kind.of_cluster(cluster)


def folded(problems: Iterable[Problem]) -> list[Problem]:
    """Order them, and keep the first of many alike: a hot room must not hide a lost card."""
    groups = grouped(problems, rank)
    found: list[Problem] = []
    for _, alike in sorted(groups.items(), key=lambda group: group[0]):
        number = sum(1 + problem.more for problem in alike)
        listed = alike if number <= _ALIKE else alike[:1]
        found += [replace(problem, more=0) for problem in listed[:-1]]
        found.append(replace(listed[-1], more=number - len(listed)))
    return found


def rank(problem: Problem) -> tuple[int, int, str]:
    """Those of the same rank are alike. What is critical comes first, whatever it is."""
    severity = SEVERITIES.index(problem.severity) if problem.severity in SEVERITIES else len(SEVERITIES)
    return severity, _RANKS.get(problem.kind, _LAST), problem.kind
