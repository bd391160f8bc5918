"""The findings for a terminal and for machines, and docs/doctor.md."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import msgspec

from podgpu.doctor import CHECKS, CLUSTER_CHECKS
from podgpu.doctor.check import Check, Finding, Status
from podgpu.model import Cluster, Snapshot
from podgpu.views.text import BOLD, BOLD_RED, CYAN, DIM, GREEN, YELLOW, line, styled, wrapped

SCHEMA = 1
_STYLES = {Status.PASS: GREEN, Status.WARN: YELLOW, Status.FAIL: BOLD_RED, Status.SKIP: DIM}
_WORDS = {Status.FAIL: "failed", Status.WARN: "warned", Status.PASS: "passed", Status.SKIP: "skipped"}
_GAP = 2
_STATUS = 4 + _GAP
_LONGEST_ID = 24
_LEAST_TEXT = 24


def text(snapshot: Snapshot, findings: Sequence[Finding], width: int, *, colour: bool) -> str:
    title = ("DEMO  " if snapshot.demo else "") + line(snapshot.node)
    return _written(title, findings, findings, width, colour=colour)


def cluster_text(
    name: str, whole: Sequence[Finding], nodes: Mapping[str, Sequence[Finding]], width: int, *, colour: bool
) -> str:
    """Write the checks of the cluster, and of each node only those that need attention."""
    parts = [_written(line(name) or "The cluster", whole, whole, width, colour=colour)]
    for node, findings in nodes.items():
        bad = [finding for finding in findings if finding.status in (Status.FAIL, Status.WARN)]
        parts.append(_written(line(node), bad, findings, width, colour=colour))
    return "\n".join(parts)


def _written(title: str, shown: Sequence[Finding], findings: Sequence[Finding], width: int, *, colour: bool) -> str:
    paint = partial(styled, colour=colour)
    column = min(max((len(finding.id) for finding in shown), default=0), _LONGEST_ID) + _GAP
    rows = (row for finding in shown for row in _rows(finding, column, width, paint))
    counts = _counts(findings)
    counted = ", ".join(paint(f"{counts[status]} {word}", _STYLES[status]) for status, word in _WORDS.items())
    return "\n".join([paint(title, BOLD), *rows, counted]) + "\n"


def json(snapshot: Snapshot, findings: Sequence[Finding]) -> str:
    return _formatted({"schema": SCHEMA, **_of_node(snapshot, findings)})


def cluster_json(
    cluster: Cluster, whole: Sequence[Finding], nodes: Mapping[str, tuple[Snapshot, Sequence[Finding]]]
) -> str:
    document = {
        "schema": SCHEMA,
        "cluster": line(cluster.name),
        "taken_at": cluster.taken_at,
        "checks": whole,
        "counts": _counts(whole),
        "nodes": [_of_node(snapshot, findings) | {"node": line(name)} for name, (snapshot, findings) in nodes.items()],
    }
    return _formatted(document)


def _of_node(snapshot: Snapshot, findings: Sequence[Finding]) -> dict[str, Any]:
    return {
        "node": line(snapshot.node),
        "version": line(snapshot.version),
        "demo": snapshot.demo,
        "taken_at": snapshot.taken_at,
        "checks": findings,
        "counts": _counts(findings),
    }


def _counts(findings: Sequence[Finding]) -> dict[str, int]:
    counts = Counter(finding.status for finding in findings)
    return {status: counts[status] for status in Status}


def _formatted(document: dict[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(document)).decode() + "\n"


def _rows(finding: Finding, column: int, width: int, paint: Callable[[str, str], str]) -> Iterator[str]:
    """The status, the id and what was found; below that, what to do."""
    indent = _STATUS + column
    room = max(width - indent, _LEAST_TEXT)
    dim = DIM if finding.status is Status.SKIP else ""
    first, *more = wrapped(finding.detail, room) or [""]
    status = paint(f"{finding.status:<{_STATUS}}", _STYLES[finding.status])
    yield status + paint(f"{finding.id:<{column - 1}} {first}", dim)
    yield from (" " * indent + paint(row, dim) for row in more)
    for number, row in enumerate(wrapped(finding.advice, room - _GAP)):
        yield " " * indent + paint(f"{'→' if number == 0 else ' '} {row}", CYAN)


_PAGE = """\
# podgpu doctor

<!-- Generated from src/podgpu/doctor by `make docs`. Do not edit. -->

`podgpu doctor` reads the node a few times, as `podgpu agent` would with the same options, and reports what works, what
does not, and what to do. `podgpu doctor --url http://127.0.0.1:19400` judges the snapshot of a running agent instead.
With the address of a `podgpu cluster`, or a kubeconfig, it judges every node, and the cluster as a whole;
`--node` chooses one. `--bundle FILE` also writes an archive for a bug report: terminal.md says what is in it.

| status | meaning |
|---|---|
| `PASS` | it works |
| `WARN` | less is known than could be, or there is a problem that needs attention |
| `FAIL` | it does not work: GPUs, or their users, are missing from the numbers; or there is a critical problem |
| `SKIP` | it does not apply here, or another check has to pass first |

The exit code is 0 when no check fails, 1 when one does, and 2 for a mistake on the command line or an agent that cannot
be read. `-o json` prints the same for machines: `schema`, `node`, `version`, `demo`, `taken_at`, `checks` with `id`,
`status`, `detail` and `advice`, and `counts` by status.

A problem has the same text as on the page and in `podgpu top`. [problems.md](problems.md) lists all kinds.

Once released, an id keeps its meaning. In `sharing.*` and `part.*` the star stands for a name, as in `sharing.mig`.
The details and the advice may quote names of pods and devices. A check that breaks is
itself a failure, which says why; the others go on.
"""
# By the first word of their ids.
_AREAS = {
    "nvml.": "The driver",
    "gpu.": "The cards",
    "mig.": "MIG",
    "proc.": "Processes",
    "kubelet.": "The kubelet",
    "api.": "The API server",
    "pods.": "Pods",
    "claims.": "Claims",
    "sharing.": "Sharing systems",
    "holders.": "Holders",
    "books.": "The books",
    "node.": "The node",
    "dialect.": "Dialects",
    "names.": "Names",
    "part.": "Other parts",
    "cluster.": "The cluster",
}


def markdown(checks: Iterable[Check] = (*CHECKS, *CLUSTER_CHECKS)) -> str:
    """Write docs/doctor.md."""
    groups = groupby(checks, key=lambda check: check.id.partition(".")[0] + ".")
    return "\n".join([_PAGE, *(_table(_AREAS[area], group) for area, group in groups)])


def _table(title: str, checks: Iterable[Check]) -> str:
    rows = [f"| `{check.id}` | {check.meaning} | {check.remedy} |" for check in checks]
    head = ["| check | it passes when | what to do |", "|---|---|---|"]
    return "\n".join([f"## {title}", "", *head, *rows, ""])
