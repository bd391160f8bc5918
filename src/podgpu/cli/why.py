import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from podgpu.cli._commands import add_output
from podgpu.cli._target import TARGET_OPTIONS, open_target
from podgpu.cli._terminal import columns
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.model import Cluster, Snapshot
from podgpu.numbers import count, integer
from podgpu.views.tenants import outsider_names

HELP = "Show how podgpu knows what a pod uses, with all the evidence."
OPTIONS = TARGET_OPTIONS

MAX_SUGGESTIONS = 3
MAX_LISTED = 6
SCHEMA = 1


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "pod",
        metavar="[NAMESPACE/]POD",
        help="the pod, by its name, the beginning of it, or its workload; or, outside Kubernetes, docker/NAME, "
        "podman/NAME, slurm/JOB, user/NAME",
    )
    parser.add_argument("-n", "--namespace", metavar="NAMESPACE", help="its namespace")
    add_output(parser, ("text", "json"))


def run(config: Config, arguments: Namespace) -> int:
    with open_target(config) as target:
        name, nodes = _name_and_nodes(target.cluster, arguments.pod, arguments.namespace)
        snapshots = [target.full(node) for node in nodes]
    if arguments.output == "json":
        print(_document(snapshots, name))
    else:
        print(*(_report(snapshot, name) for snapshot in snapshots), sep="\n", end="")
    return 0


def _name_and_nodes(cluster: Cluster, pod: str, namespace: str | None) -> tuple[str, list[str]]:
    """Return the full name, and the nodes that know it: more than one if the pod has just moved."""
    from podgpu.views.why_evidence import pod_names, workload_names

    snapshots = [node.snapshot for node in cluster.nodes if node.snapshot]
    pods = {snapshot.node: pod_names(snapshot) for snapshot in snapshots}
    others = {snapshot.node: outsider_names(snapshot) for snapshot in snapshots if namespace is None}
    workloads = {pod: workload for snapshot in snapshots for pod, workload in workload_names(snapshot).items()}
    name = _full_name(pod, namespace, _all(pods.values()), _all(others.values()), workloads)
    nodes = [node for node in pods if name in pods[node]]
    nodes = nodes or [node for node in others if name in others[node]]
    if not nodes:
        known = _all(pods.values()) + _all(others.values())
        place = f"node {cluster.nodes[0].name}" if len(cluster.nodes) == 1 else count(len(cluster.nodes), "node")
        raise UserError(f"no GPU of {place} has a pod {name}; {_advice(name, known)}")
    return name, nodes


def _report(snapshot: Snapshot, name: str) -> str:
    from podgpu.views.why import why, why_outsider

    namespace, pod = name.split("/", 1) if "/" in name else ("", name)
    width = columns()
    text = why(snapshot, namespace, pod, width) or why_outsider(snapshot, name, width)
    return text or f"{name} has just left the GPUs of node {snapshot.node}.\n"


def _document(snapshots: Iterable[Snapshot], name: str) -> str:
    from podgpu.views.why_evidence import evidence

    nodes = [node for snapshot in snapshots if (node := evidence(snapshot, name))]
    return json.dumps({"schema": SCHEMA, "name": name, "nodes": nodes}, indent=2, ensure_ascii=False)


def _all(names: Iterable[Sequence[str]]) -> list[str]:
    return sorted({name for some in names for name in some})


def _full_name(
    pod: str, namespace: str | None, pods: Sequence[str], others: Sequence[str], workloads: Mapping[str, str]
) -> str:
    """Return `namespace/pod`. The first way that finds exactly one pod counts; an unknown name stays as it is."""
    before, slash, bare = pod.rpartition("/")
    if slash and namespace not in (None, before):
        raise UserError(f"the namespace is {before!r} or {namespace!r}; give one only")
    if not bare:
        raise UserError("give the name of a pod; `podgpu top` lists them")
    whole = pod if slash or namespace is None else f"{namespace}/{pod}"
    if whole in pods or whole in others:
        return whole
    where = namespace if namespace is not None else before if slash else None
    for called, fits in _ways(pod if namespace is None else bare, bare, where, workloads):
        matches = [name for name in pods if fits(name)]
        if len(matches) > 1:
            raise UserError(f"several {called} {bare}; give one of {_listed(matches)}")
        if matches:
            return matches[0]
    matches = [name for name in others if not slash and name.endswith(f"/{pod}")]
    if len(matches) > 1:
        raise UserError(f"several are called {pod}; give one of {_listed(matches)}")
    return matches[0] if matches else whole


def _ways(
    pod: str, bare: str, namespace: str | None, workloads: Mapping[str, str]
) -> Iterator[tuple[str, Callable[[str], bool]]]:
    """Yield the ways to name a pod: its name, its workload, KIND/NAME of its workload, or a prefix."""

    def is_there(name: str) -> bool:
        return namespace is None or name.startswith(f"{namespace}/")

    yield "are called", lambda name: is_there(name) and name.endswith(f"/{bare}")
    yield "pods are of the workload", lambda name: is_there(name) and workloads.get(name, "").endswith(f"/{bare}")
    yield "pods are of the workload", lambda name: workloads.get(name, "").lower() == pod.lower() != ""
    yield "begin with", lambda name: is_there(name) and name.partition("/")[2].startswith(bare)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MAX_LISTED
    return ", ".join(names[:MAX_LISTED]) + (f" and {integer(more)} more" if more > 0 else "")


def _advice(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    # With no namespace or a wrong one, the pod's own name may still match.
    by_name = {full.rpartition("/")[2]: full for full in known}
    near = get_close_matches(name, known, n=MAX_SUGGESTIONS)
    near += [by_name[pod] for pod in get_close_matches(name.rpartition("/")[2], by_name, n=MAX_SUGGESTIONS)]
    if near:
        return f"did you mean {' or '.join(dict.fromkeys(near[:MAX_SUGGESTIONS]))}?"
    return "ask the agent on the pod's node with --url"
