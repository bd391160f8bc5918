"""Checks over a cluster as a whole: whether its nodes can be read, and agree."""

from collections import Counter

from podgpu.doctor.check import (
    CheckResult,
    Finding,
    by_problems,
    check,
    failed,
    findings,
    passed,
    several,
    skipped,
    warned,
)
from podgpu.insight import card_problems, holder_problems
from podgpu.model import Cluster
from podgpu.numbers import count
from podgpu.views.text import line

NO_NODE = skipped("no node")
_OF_CARDS = tuple(kind.name for kind in card_problems.KINDS)
_OF_HOLDERS = tuple(kind.name for kind in holder_problems.KINDS)


@check(
    "cluster.parts",
    "The API server and whatever else the reader of the cluster and the agents need can be reached.",
    "Do what the reason says; the other parts work meanwhile.",
)
def _parts(cluster: Cluster) -> CheckResult:
    found = by_problems(cluster, "view_lost", "part_down", "part_degraded")
    return found or passed("every part of the reader and of the agents works")


@check(
    "cluster.nodes",
    "Every node was read within three intervals.",
    "Ask the agent there: podgpu doctor --url.",
)
def _read(cluster: Cluster) -> CheckResult:
    if found := by_problems(cluster, "node_silent"):
        return found
    nodes = count(len(cluster.nodes), "node")
    return passed(f"{nodes} read in time") if cluster.nodes else NO_NODE


@check(
    "cluster.agents",
    "An agent or exporter reads the GPUs of every node that has some.",
    "Let the agent's DaemonSet run there: check its node selector and tolerations.",
)
def _agents(cluster: Cluster) -> CheckResult:
    if without := [line(node.name) for node in cluster.nodes if node.state == "allocation"]:
        return warned(f"nothing reads the GPUs of {count(len(without), 'node')}: {several(without)}")
    return passed("every node's GPUs are read") if cluster.nodes else NO_NODE


@check(
    "cluster.gpus",
    "No card is lost, broken, throttled, or busy with context switches.",
    "See the checks of its node, below.",
)
def _gpus(cluster: Cluster) -> CheckResult:
    return by_problems(cluster, *_OF_CARDS) or (passed("no GPU has a problem") if cluster.nodes else NO_NODE)


@check(
    "cluster.holders",
    "No pod uses a GPU without an allocation, or holds a GPU without using it for the time of --idle.after.",
    "`podgpu idle` lists the pods that hold GPUs and do not use them.",
)
def _holders(cluster: Cluster) -> CheckResult:
    found = by_problems(cluster, *_OF_HOLDERS)
    return found or (passed("every pod uses what is allocated to it, and nothing else") if cluster.nodes else NO_NODE)


@check("cluster.versions", "All agents are of one version.", "Finish the upgrade of the DaemonSet.")
def _versions(cluster: Cluster) -> CheckResult:
    found = Counter(line(node.snapshot.version) for node in cluster.nodes if node.snapshot and node.origin == "agent")
    if not found:
        return skipped("no agent answers")
    words = ", ".join(f"{version} on {count(nodes, 'node')}" for version, nodes in found.most_common(3))
    return passed(words) if len(found) == 1 else warned(words)


@check(
    "cluster.demo",
    "No node of a real cluster shows made-up numbers.",
    "Stop `podgpu demo` there, and run `podgpu agent`.",
)
def _demo(cluster: Cluster) -> CheckResult:
    made_up = [line(node.name) for node in cluster.nodes if node.snapshot and node.snapshot.demo]
    if made_up and len(made_up) < len(cluster.nodes):
        return failed(f"the numbers of {several(made_up)} are made up")
    return skipped("a demo") if made_up else passed("no node's numbers are made up")


CLUSTER_CHECKS = (_parts, _read, _agents, _gpus, _holders, _versions, _demo)


def examine_cluster(cluster: Cluster) -> tuple[Finding, ...]:
    return tuple(finding for check in CLUSTER_CHECKS for finding in findings(check, cluster))
