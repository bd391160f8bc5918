"""The findings for a terminal and for machines."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from podgpu.doctor.check import Finding, Status
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
