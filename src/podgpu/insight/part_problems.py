"""What is wrong with a node and with the parts of its agent, or of the cluster's reader."""

from collections.abc import Iterable, Iterator

from podgpu.insight.advice import next_step
from podgpu.insight.problem_kind import CRITICAL, WARNING, ProblemKind, fault_words
from podgpu.model import Cluster, PartStatus, Problem

VIEW = "view"  # the part of a command that reads the documents of others
# These go away by themselves, or a user asked for them.
PASSING = frozenset({"starting", "released", "not_synced", "not_ready", "throttled", "rate_limited"})


def severity_of_part(part: PartStatus) -> str:
    """Of a part that does not work, or not fully."""
    is_passing = part.fault is not None and part.fault.reason in PASSING
    return WARNING if part.up or part.outgoing or is_passing else CRITICAL


def _part_problems(parts: Iterable[PartStatus], node: str, *, down: bool) -> Iterator[Problem]:
    for part in parts:
        if part.up == down or (part.up and part.fault is None) or part.name == VIEW:
            continue
        said = fault_words(part.fault) if part.fault else "it does not work"
        yield Problem(
            kind="part_down" if down else "part_degraded",
            severity=severity_of_part(part),
            title="Down" if down else "Degraded",
            text=f"{part.name}: {said}.",
            next_step=next_step(part.fault, part.name) if part.fault else "",
            node=node,
        )


def _view_lost(cluster: Cluster) -> Iterator[Problem]:
    for part in cluster.parts:
        if part.name == VIEW and not part.up and part.fault is not None:
            yield Problem(
                kind="view_lost", severity=CRITICAL, title="Cut off", text=f"{part.fault.detail.rstrip('.')}."
            )


KINDS = (
    ProblemKind(
        "view_lost",
        1,
        "A command no longer reaches the server it reads from, and shows what it read last.",
        of_cluster=_view_lost,
    ),
    ProblemKind(
        "part_down",
        30,
        "A part of the agent, or of the cluster's reader, does not work.",
        of_snapshot=lambda snapshot, _: _part_problems(snapshot.parts, snapshot.node, down=True),
        of_cluster=lambda cluster: _part_problems(cluster.parts, "", down=True),
    ),
    ProblemKind(
        "part_degraded",
        33,
        "A part works, but something is missing.",
        of_snapshot=lambda snapshot, _: _part_problems(snapshot.parts, snapshot.node, down=False),
        of_cluster=lambda cluster: _part_problems(cluster.parts, "", down=False),
    ),
)
