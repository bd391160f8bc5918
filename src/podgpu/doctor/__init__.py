"""Judges a node: a check is a function of a snapshot and a few facts of the machine."""

from collections.abc import Sequence

from podgpu.doctor import attribution, driver, environment, hardware, owners
from podgpu.doctor.check import REPORT, Check, CheckResult, Finding, Judge, Machine, Status, finding
from podgpu.doctor.cluster import CLUSTER_CHECKS, examine_cluster
from podgpu.model import Snapshot
from podgpu.views.text import line

__all__ = ["CHECKS", "CLUSTER_CHECKS", "Finding", "Machine", "Status", "examine", "examine_cluster"]

# In the order of the report: that of the modules, and within a module that of its checks.
CHECKS: tuple[Check[Judge], ...] = tuple(
    found
    for topic in (driver, hardware, owners, attribution, environment)
    for found in vars(topic).values()
    if isinstance(found, Check)
)


def examine(snapshot: Snapshot, machine: Machine, checks: Sequence[Check[Judge]] = CHECKS) -> tuple[Finding, ...]:
    return tuple(finding for check in checks for finding in _findings(check, snapshot, machine))


def _findings(check: Check[Judge], snapshot: Snapshot, machine: Machine) -> list[Finding]:
    """A check that breaks must not take the others with it."""
    try:
        judged = check.judge(snapshot, machine)
        verdicts = {"": judged} if isinstance(judged, CheckResult) else judged
        return [finding(check.id.replace("*", name), check.remedy, verdict) for name, verdict in verdicts.items()]
    except Exception as error:
        detail = line(f"this check broke, which is a bug in podgpu: {type(error).__name__}: {error}")
        return [Finding(id=check.id, status=Status.FAIL, detail=detail, advice=REPORT)]
