"""Judges a node: a check is a function of a snapshot and a few facts of the machine, and a row in `checks`."""

from podgpu.doctor.check import Finding, Machine, Status
from podgpu.doctor.checks import CHECKS, examine
from podgpu.doctor.cluster import CLUSTER_CHECKS, examine_cluster

__all__ = ["CHECKS", "CLUSTER_CHECKS", "Finding", "Machine", "Status", "examine", "examine_cluster"]
