"""Checks over a cluster as a whole: whether its nodes can be read, and agree."""

from collections import Counter
from collections.abc import Callable

from msgspec import Struct

from podgpu.doctor.verdict import Finding, Verdict, failed, finding, passed, several, skipped, warned
from podgpu.model import Cluster
from podgpu.numbers import count
from podgpu.views.glance import problem
from podgpu.views.text import line


class ClusterCheck(Struct, frozen=True):
    id: str
    meaning: str
    remedy: str
    judge: Callable[[Cluster], Verdict]


def _parts(cluster: Cluster) -> Verdict:
    down = [f"{line(one.name)}: {problem(one.fault)}" for one in cluster.parts if not one.up and one.fault]
    return failed(several(down)) if down else passed("everything that the reader needs works")


def _read(cluster: Cluster) -> Verdict:
    bad = [one for one in cluster.nodes if one.state in ("stale", "failed")]
    words = [f"{line(one.name)}: {line(one.reason) or one.state}" for one in bad]
    if bad:
        return failed(
            f"{len(bad)} of {count(len(cluster.nodes), 'node')}: {several(words)}", line(bad[0].detail)
        )
    return (
        passed(f"{count(len(cluster.nodes), 'node')} read in time") if cluster.nodes else skipped("no node")
    )


def _agents(cluster: Cluster) -> Verdict:
    without = [line(one.name) for one in cluster.nodes if one.state == "allocation"]
    if without:
        return warned(f"nobody reads the GPUs of {count(len(without), 'node')}: {several(without)}")
    return passed("every node's GPUs are read") if cluster.nodes else skipped("no node")


def _versions(cluster: Cluster) -> Verdict:
    found = Counter(
        line(one.snapshot.version) for one in cluster.nodes if one.snapshot and one.origin == "agent"
    )
    if not found:
        return skipped("no agent answers")
    words = ", ".join(f"{version} on {count(nodes, 'node')}" for version, nodes in found.most_common(3))
    return passed(words) if len(found) == 1 else warned(words)


def _demo(cluster: Cluster) -> Verdict:
    made_up = [line(one.name) for one in cluster.nodes if one.snapshot and one.snapshot.demo]
    if made_up and len(made_up) < len(cluster.nodes):
        return failed(f"the numbers of {several(made_up)} are made up")
    return skipped("a demo") if made_up else passed("no node's numbers are made up")


CLUSTER_CHECKS = (
    ClusterCheck(
        "cluster.parts",
        "The API server and whatever else the reader of the cluster needs can be reached.",
        "Do what the reason says; the other parts work meanwhile.",
        _parts,
    ),
    ClusterCheck(
        "cluster.nodes",
        "Every node was read within three intervals.",
        "Ask the agent there: podgpu doctor --url.",
        _read,
    ),
    ClusterCheck(
        "cluster.agents",
        "Somebody reads the GPUs of every node that has some.",
        "Let the agent's DaemonSet run there: check its node selector and tolerations.",
        _agents,
    ),
    ClusterCheck(
        "cluster.versions",
        "All agents are of one version.",
        "Finish the upgrade of the DaemonSet.",
        _versions,
    ),
    ClusterCheck(
        "cluster.demo",
        "No node of a real cluster shows made-up numbers.",
        "Stop `podgpu demo` there, and run `podgpu agent`.",
        _demo,
    ),
)


def examine_cluster(cluster: Cluster) -> tuple[Finding, ...]:
    return tuple(finding(check.id, check.remedy, check.judge(cluster)) for check in CLUSTER_CHECKS)
