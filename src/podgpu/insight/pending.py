"""Pods that wait for a GPU: what each asks for, since when, what the scheduler says, and what is free beside it."""

from collections.abc import Sequence

from msgspec import Struct

from podgpu.insight.sums import of_cards
from podgpu.insight.tenants import cards_of, cards_of_node
from podgpu.model import Cluster, PendingPod, Sums
from podgpu.numbers import count, gpus, integer

_MIG = "mig-"
_WHOLE = "gpu"
NOT_SAID = "The scheduler has not said why."
NOT_READ = "No node can say what is free."


class PendingRow(Struct, frozen=True, kw_only=True):
    """One pod that asks for a GPU and is on no node yet. Absent is what is not known."""

    namespace: str  # of the pod
    name: str  # of the pod
    cluster: str = ""  # the cluster that it waits in; empty unless several are read
    workload_kind: str = ""  # what it was made for
    workload_name: str = ""
    asks: str = ""  # resources of GPUs, such as `8 nvidia.com/gpu`, and resource claims
    since: float | None = None  # seconds since 1970, when it was made
    waiting_seconds: float | None = None  # the same as a duration
    reason: str = ""  # what the scheduler says
    free: str = ""  # what is free of the kind that it asks for, in a sentence


class PendingPods(Struct, frozen=True):
    """Those that wait longest come first. `free` says what is free in all."""

    rows: tuple[PendingRow, ...] = ()
    free: str = ""


def pending_pods(cluster: Cluster) -> PendingPods:
    """List the pods that wait. A pod is on one node, so what is free is told of the node that has most, too."""
    if not cluster.pending:
        return PendingPods()
    whole = cluster.insight.sums if cluster.insight else of_cards(cards_of(cluster))
    nodes = [of_cards(cards_of_node(node)) for node in cluster.nodes]
    return PendingPods(tuple(_row(pod, cluster.taken_at, whole, nodes) for pod in cluster.pending), _in_all(whole))


def _row(pod: PendingPod, now: float, whole: Sums, nodes: Sequence[Sums]) -> PendingRow:
    asks = [f"{amount} {name}" for name, amount in pod.asks.items()]
    free = dict.fromkeys(_free(name, whole, nodes) for name in pod.asks) or [_in_all(whole)]
    return PendingRow(
        namespace=pod.namespace,
        name=pod.name,
        cluster=pod.cluster,
        workload_kind=pod.workload.kind if pod.workload else "",
        workload_name=pod.workload.name if pod.workload else "",
        asks=", ".join([*asks, *(f"claim {name}" for name in pod.claims)]),
        since=pod.since,
        waiting_seconds=None if pod.since is None else max(0.0, now - pod.since),
        reason=pod.reason or NOT_SAID,
        free=" ".join(free),
    )


def _free(resource: str, whole: Sums, nodes: Sequence[Sums]) -> str:
    """What is free of a resource, as far as its name says what that is. A sharing system may cut it into shares."""
    kind = resource.rpartition("/")[2]
    if whole.free_whole_gpus is None:
        return NOT_READ
    if kind.startswith(_MIG):
        profile = kind.removeprefix(_MIG)
        most = max((_instances(sums, profile) for sums in nodes), default=0)
        return _told(_instances(whole, profile), most, "slice", f" of {profile}") + _unusable(whole)
    if kind == _WHOLE:
        most = max((sums.free_whole_gpus or 0 for sums in nodes), default=0)
        return _told(whole.free_whole_gpus, most, "whole GPU") + _unusable(whole)
    return _in_all(whole)


def _instances(sums: Sums, profile: str) -> int:
    return sum(free.count for free in sums.free_instances if free.profile == profile)


def _told(number: int, most: int, noun: str, of: str = "") -> str:
    if not number:
        return f"No {noun}{of} is free."
    return f"{count(number, noun)}{of} {'is' if number == 1 else 'are'} free, at most {integer(most)} on one node."


def _in_all(sums: Sums) -> str:
    if sums.free_gpus is None:
        return NOT_READ
    slices = [f"{count(free.count, 'slice')} of {free.profile}" for free in sums.free_instances]
    parts = [f"{gpus(sums.free_gpus)} in all", f"{integer(sums.free_whole_gpus)} whole", *slices]
    return f"Free: {', '.join(parts)}.{_unusable(sums)}"


def _unusable(sums: Sums) -> str:
    """What might be free, and cannot be had or is not known."""
    cordoned = f" {gpus(sums.cordoned_gpus)} more on cordoned nodes." if sums.cordoned_gpus else ""
    dark = f" Of {count(sums.dark_gpus, 'GPU')} on dark nodes it is not known." if sums.dark_gpus else ""
    return cordoned + dark
