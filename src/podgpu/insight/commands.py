"""Commands for a terminal that lead on from what a screen shows. Names are quoted as data: they come from others."""

from shlex import quote

from msgspec import Struct

from podgpu.catalog.agent_parts import PODRESOURCES
from podgpu.insight.tenants import Placement, is_outsider, pod_name
from podgpu.model import SEVERITIES, ClusterNode, Problem

PORT = 19400


class ShellCommand(Struct, frozen=True):
    """`name` says in a few words what it is, `text` is what a shell takes."""

    name: str
    text: str


def word(text: str) -> str:
    """Write a name so that a shell takes it as one word, and a terminal for no command, whatever is in it."""
    return quote("".join(letter if letter.isprintable() else "\ufffd" for letter in text))


def agent_url(node: str) -> str:
    return f"http://{node}:{PORT}"


def of_pod(places: list[Placement]) -> list[ShellCommand]:
    """Its log, what Kubernetes knows of it, and how its numbers are known. Outside Kubernetes only the last."""
    if not places:
        return []
    first = places[0]
    ref, own = first.tenant.container, pod_name(first.tenant.container)
    url = f" --url {word(agent_url(first.on.snapshot.node))}" if first.on.is_stored else ""
    why = ShellCommand("podgpu why", f"podgpu why {word(own)}{url}")
    if is_outsider(ref):
        return _safe([why], own)
    kubectl, where = _kubectl(first.on.node), f"-n {word(ref.namespace)} {word(ref.pod)}"
    return _safe(
        [
            ShellCommand("kubectl logs", f"{kubectl} logs {where} {_containers(places)}"),
            ShellCommand("kubectl describe pod", f"{kubectl} describe pod {where}"),
            why,
        ],
        ref.namespace,
        ref.pod,
    )


def of_node(node: ClusterNode) -> list[ShellCommand]:
    """Keep new pods off it, what Kubernetes knows of it, and what podgpu's own checks find there."""
    name = node.bare_name
    doctor = ShellCommand("podgpu doctor", f"podgpu doctor --url {word(agent_url(name))}")
    if not _is_in_kubernetes(node):
        return _safe([doctor], name)
    kubectl = _kubectl(node)
    return _safe(
        [
            ShellCommand("kubectl cordon", f"{kubectl} cordon {word(name)}"),
            ShellCommand("kubectl describe node", f"{kubectl} describe node {word(name)}"),
            doctor,
        ],
        name,
    )


def of_problem(problem: Problem, node: ClusterNode) -> str | None:
    """Return what to run first: the log of a pod, what keeps new pods off a bad card, or what is known of the node."""
    if not _is_in_kubernetes(node):
        return None
    namespace, _, pod = problem.pod.rpartition("/")
    if namespace and pod and _has_pod(node, problem.pod):
        text = f"{_kubectl(node)} logs -n {word(namespace)} {word(pod)} --all-containers"
        found = _safe([ShellCommand("", text)], namespace, pod)
    else:
        cordon, describe = of_node(node)[:2] or (None, None)
        is_bad = problem.severity == SEVERITIES[0] and problem.uuid
        chosen = cordon if is_bad else describe
        found = [chosen] if chosen else []
    return found[0].text if found else None


def _kubectl(node: ClusterNode | None) -> str:
    """Where several clusters are read, a node's name alone might be that of a node elsewhere."""
    return f"kubectl --context {word(node.cluster)}" if node and node.cluster else "kubectl"


def _containers(places: list[Placement]) -> str:
    names = {place.tenant.container.container for place in places}
    only = names.pop() if len(names) == 1 else ""
    return f"-c {word(only)}" if only and not only.startswith("-") else "--all-containers"


def _is_in_kubernetes(node: ClusterNode) -> bool:
    snapshot = node.snapshot
    if snapshot is None:
        return node.ready is not None or bool(node.allocatable)
    if snapshot.pods or any(part.name == PODRESOURCES.name for part in snapshot.parts):
        return True
    return any(not is_outsider(tenant.container) for card in snapshot.cards for tenant in card.tenants)


def _has_pod(node: ClusterNode, name: str) -> bool:
    """An owner outside Kubernetes may have a name of the same form."""
    tenants = (tenant for card in (node.snapshot.cards if node.snapshot else ()) for tenant in card.tenants)
    return any(not is_outsider(tenant.container) and pod_name(tenant.container) == name for tenant in tenants)


def _safe(commands: list[ShellCommand], *names: str) -> list[ShellCommand]:
    """Return none if a name would be taken for an option, or says nothing."""
    return [] if any(not name or name.startswith("-") for name in names) else commands
