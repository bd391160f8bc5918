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
from podgpu.insight import card_problems, dark, holder_problems
from podgpu.insight.idle import idle_pods
from podgpu.model import Cluster
from podgpu.numbers import count
from podgpu.views.text import line

NO_NODE = skipped("no node")
NOTHING_READ = skipped("not known: no node's GPUs were read")
_UNREAD = "`podgpu top nodes` says why they were not read."
_OF_CARDS = tuple(kind.name for kind in card_problems.KINDS)
_OF_HOLDERS = tuple(kind.name for kind in holder_problems.KINDS)


def _not_read(cluster: Cluster) -> CheckResult | None:
    """Say of which nodes nothing is known, as nothing was read there lately; None if each was read."""
    if not cluster.nodes:
        return NO_NODE
    unread = [line(node.name) for node in cluster.nodes if node.state != "fresh" or node.snapshot is None]
    if len(unread) == len(cluster.nodes):
        return NOTHING_READ
    return warned(f"not known of {count(len(unread), 'node')}: {several(unread)}", _UNREAD) if unread else None


@check(
    "cluster.parts",
    "The API server and whatever else the reader of the cluster and the agents need can be reached.",
    "Do what the reason says; the other parts work meanwhile.",
)
def _parts(cluster: Cluster) -> CheckResult:
    if found := by_problems(cluster, "view_lost", "part_down", "part_degraded"):
        return found
    seen = any(node.state in ("fresh", "stale") for node in cluster.nodes)
    return passed("every part of the reader and of the agents works") if seen or cluster.parts else NOTHING_READ


@check(
    "cluster.nodes",
    "Every node was read within three intervals.",
    "Ask the agent there: podgpu doctor --url.",
)
def _read(cluster: Cluster) -> CheckResult:
    if found := by_problems(cluster, dark.KIND):
        return found
    read = [node for node in cluster.nodes if node.state == "fresh"]
    if cluster.nodes and not read:
        return NOTHING_READ
    return passed(f"{count(len(read), 'node')} read in time") if cluster.nodes else NO_NODE


@check(
    "cluster.agents",
    "An agent or exporter reads the GPUs of every node that has some.",
    "Let the agent's DaemonSet run there: check its node selector and tolerations.",
)
def _agents(cluster: Cluster) -> CheckResult:
    if without := [line(node.name) for node in cluster.nodes if node.state == "allocation"]:
        return warned(f"nothing reads the GPUs of {count(len(without), 'node')}: {several(without)}")
    return _not_read(cluster) or passed("every node's GPUs are read")


@check(
    "cluster.gpus",
    "No card is lost, broken, throttled, or busy with context switches.",
    "See the checks of its node, below.",
)
def _gpus(cluster: Cluster) -> CheckResult:
    return by_problems(cluster, *_OF_CARDS) or _not_read(cluster) or passed("no GPU has a problem")


@check(
    "cluster.holders",
    "No pod uses a GPU without an allocation, or holds a GPU without using it for the time of --idle.after.",
    "`podgpu idle` lists the pods that hold GPUs and do not use them.",
)
def _holders(cluster: Cluster) -> CheckResult:
    if found := by_problems(cluster, *_OF_HOLDERS) or _not_read(cluster):
        return found
    if unknown := idle_pods(cluster).unknown:
        return skipped(f"the GPU use of {count(unknown, 'pod')} is not known")
    return passed("every pod uses what is allocated to it, and nothing else")


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
    if made_up:
        return skipped("a demo")
    return _not_read(cluster) or passed("no node's numbers are made up")


CLUSTER_CHECKS = (_parts, _read, _agents, _gpus, _holders, _versions, _demo)


def examine_cluster(cluster: Cluster) -> tuple[Finding, ...]:
    return tuple(finding for check in CLUSTER_CHECKS for finding in findings(check, cluster))
