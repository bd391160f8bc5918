"""Judges a node: a check is a function of a snapshot and a few facts of the machine."""

from collections.abc import Sequence

from podgpu.doctor import attribution, driver, environment, hardware, owners
from podgpu.doctor.check import Check, Finding, Machine, Status, findings
from podgpu.doctor.cluster import CLUSTER_CHECKS, examine_cluster
from podgpu.model import Snapshot

__all__ = ["CHECKS", "CLUSTER_CHECKS", "Finding", "Machine", "Status", "examine", "examine_cluster"]

# In the order of the report: that of the modules, and within a module that of its checks.
CHECKS = tuple(
    found
    for topic in (driver, hardware, owners, attribution, environment)
    for found in vars(topic).values()
    if isinstance(found, Check)
)


def examine(snapshot: Snapshot, machine: Machine, checks: Sequence[Check] = CHECKS) -> tuple[Finding, ...]:
    return tuple(finding for check in checks for finding in findings(check, snapshot, machine))
