"""Commands for a terminal that lead on from what a screen shows. Names are quoted as data: they come from others."""

from shlex import quote

from msgspec import Struct

from podgpu.catalog.agent_parts import PODRESOURCES
from podgpu.insight.tenants import NodeCard, Placement, is_outsider, pod_name
from podgpu.views.text import line

PORT = 19400


class ShellCommand(Struct, frozen=True):
    """`name` says in a few words what it is, `text` is what a shell takes."""

    name: str
    text: str


def word(text: str) -> str:
    """Write a name so that a shell takes it as one word, whatever is in it."""
    return quote(line(text))


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
    kubectl, where = _kubectl(first.on), f"-n {word(ref.namespace)} {word(ref.pod)}"
    return _safe(
        [
            ShellCommand("kubectl logs", f"{kubectl} logs {where} {_containers(places)}"),
            ShellCommand("kubectl describe pod", f"{kubectl} describe pod {where}"),
            why,
        ],
        ref.namespace,
        ref.pod,
    )


def of_card(on: NodeCard) -> list[ShellCommand]:
    """Keep new pods off its node, what Kubernetes knows of the node, and what podgpu's own checks find there."""
    node = on.node.bare_name if on.node else on.snapshot.node
    doctor = ShellCommand("podgpu doctor", f"podgpu doctor --url {word(agent_url(node))}")
    if not _is_in_kubernetes(on):
        return _safe([doctor], node)
    kubectl = _kubectl(on)
    return _safe(
        [
            ShellCommand("kubectl cordon", f"{kubectl} cordon {word(node)}"),
            ShellCommand("kubectl describe node", f"{kubectl} describe node {word(node)}"),
            doctor,
        ],
        node,
    )


def _kubectl(on: NodeCard) -> str:
    """Where several clusters are read, a node's name alone might be that of a node elsewhere."""
    cluster = on.node.cluster if on.node else ""
    return f"kubectl --context {word(cluster)}" if cluster else "kubectl"


def _containers(places: list[Placement]) -> str:
    names = {place.tenant.container.container for place in places}
    only = names.pop() if len(names) == 1 else ""
    return f"-c {word(only)}" if only and not only.startswith("-") else "--all-containers"


def _is_in_kubernetes(on: NodeCard) -> bool:
    snapshot = on.snapshot
    if snapshot.pods or any(part.name == PODRESOURCES.name for part in snapshot.parts):
        return True
    return any(not is_outsider(tenant.container) for tenant in on.card.tenants)


def _safe(commands: list[ShellCommand], *names: str) -> list[ShellCommand]:
    """Return none if a name would be taken for an option, or says nothing."""
    return [] if any(not name or name.startswith("-") for name in names) else commands
