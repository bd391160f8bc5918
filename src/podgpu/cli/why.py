import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence

from podgpu.cli._view import LOOKING, open_view
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.model import Cluster, Snapshot

HELP = "Show how podgpu knows what a pod uses, with all the evidence."
OPTIONS = LOOKING

MAX_SUGGESTIONS = 3


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "pod",
        metavar="[NAMESPACE/]POD",
        help="the pod; or, outside Kubernetes, docker/NAME, podman/NAME, slurm/JOB, user/NAME",
    )
    parser.add_argument("-n", "--namespace", metavar="NAMESPACE", help="its namespace")


def run(config: Config, arguments: Namespace) -> int:
    view = open_view(config)
    try:
        name, nodes = _found(view.cluster, arguments.pod, arguments.namespace)
        for number, node in enumerate(nodes):
            print("\n" * (number > 0) + _report(view.full(node), name), end="")
    finally:
        view.close()
    return 0


def _found(cluster: Cluster, pod: str, namespace: str | None) -> tuple[str, list[str]]:
    """Return the full name, and the nodes that know it: more than one if the pod has just moved."""
    from podgpu.views.outsider import outsider_names
    from podgpu.views.why import pod_names

    snapshots = [one.snapshot for one in cluster.nodes if one.snapshot]
    pods = {one.node: pod_names(one) for one in snapshots}
    others = {one.node: outsider_names(one) for one in snapshots} if namespace is None else {}
    name = _full(pod, namespace, _all(pods.values()), _all(others.values()))
    nodes = [node for node in pods if name in pods[node]]
    nodes = nodes or [node for node in others if name in others[node]]
    if not nodes:
        known = _all(pods.values()) + _all(others.values())
        raise UserError(f"no GPU of {_place(cluster)} has a pod {name}; {_advice(name, known)}")
    return name, nodes


def _report(snapshot: Snapshot, name: str) -> str:
    from podgpu.views.why import why, why_outsider

    namespace, pod = name.split("/", 1) if "/" in name else ("", name)
    width = shutil.get_terminal_size().columns
    text = why(snapshot, namespace, pod, width) or why_outsider(snapshot, name, width)
    return text or f"{name} has just left the GPUs of node {snapshot.node}.\n"


def _place(cluster: Cluster) -> str:
    return f"node {cluster.nodes[0].name}" if len(cluster.nodes) == 1 else f"{len(cluster.nodes)} nodes"


def _all(names: Iterable[Sequence[str]]) -> list[str]:
    return sorted({name for some in names for name in some})


def _full(pod: str, namespace: str | None, pods: Sequence[str], others: Sequence[str]) -> str:
    """Return `namespace/pod`. A bare name is enough if only one namespace has it. Pods come before others."""
    given, slash, _ = pod.rpartition("/")
    if slash and namespace not in (None, given):
        raise UserError(f"the namespace is {given!r} or {namespace!r}; give one only")
    if slash or namespace is not None:
        return pod if slash else f"{namespace}/{pod}"
    found = [name for name in pods if name.endswith(f"/{pod}")]
    found = found or [name for name in others if name.endswith(f"/{pod}")]
    if len(found) > 1:
        raise UserError(f"several are called {pod}; give one of {', '.join(found)}")
    return found[0] if found else pod


def _advice(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    # With no namespace or a wrong one, the pod's own name may still match.
    by_name = {full.rpartition("/")[2]: full for full in known}
    near = get_close_matches(name, known, n=MAX_SUGGESTIONS)
    near += [by_name[one] for one in get_close_matches(name.rpartition("/")[2], by_name, n=MAX_SUGGESTIONS)]
    if near:
        return f"did you mean {' or '.join(dict.fromkeys(near[:MAX_SUGGESTIONS]))}?"
    return "ask the agent on the pod's node with --url"
