"""How much memory of each card is allocated to which pod: the figures behind `podgpu inspect`, in bytes.

What is not known is None. A sum leaves it out, and says that it does.
"""

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from podgpu.insight.tenants import reading
from podgpu.model import UNKNOWN, Card, Claim, Cluster, ClusterNode, Instance, PendingPod, Snapshot
from podgpu.model.kube import SPEC, grouped
from podgpu.views.text import printable

TOTAL, USED = "memory_total_bytes", "memory_used_bytes"
GIB = 1 << 30

_PROFILE = re.compile(r"[0-9]+g\.(?P<gib>[0-9]+)gb.*")


class PodMemory(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is allocated to one pod on one card, or on no known card."""

    namespace: str
    name: str
    uid: str = ""
    allocated_bytes: int | None = None
    used_bytes: int | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        return self.namespace, self.name, self.uid


class CardMemory(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`index` is None, and `uuid` empty, if not known."""

    index: int | None = None
    uuid: str = ""
    total_bytes: int | None = None
    used_bytes: int | None = None
    pods: tuple[PodMemory, ...] = ()


class NodeMemory(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`pending` are pods that the node runs, or is about to run, and whose card is not known."""

    name: str
    address: str = ""
    cards: tuple[CardMemory, ...] = ()
    pending: tuple[PodMemory, ...] = ()

    @property
    def pods(self) -> list[PodMemory]:
        return [*(pod for card in self.cards for pod in card.pods), *self.pending]


class ClusterMemory(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`waiting` are pods without a node."""

    nodes: tuple[NodeMemory, ...] = ()
    waiting: tuple[PendingPod, ...] = ()

    @property
    def cards(self) -> list[CardMemory]:
        return [card for node in self.nodes for card in node.cards]

    @property
    def pods(self) -> list[PodMemory]:
        return [pod for node in self.nodes for pod in node.pods]


class KnownSum(Struct, frozen=True):
    """A sum of what is known, and whether it is all there is."""

    size: int = 0
    is_whole: bool = True

    @property
    def exact(self) -> int | None:
        return self.size if self.is_whole else None


def known_sum(sizes: Iterable[int | None]) -> KnownSum:
    listed = tuple(sizes)
    return KnownSum(sum(size for size in listed if size is not None), None not in listed)


def allocated(pods: Iterable[PodMemory]) -> KnownSum:
    return known_sum(pod.allocated_bytes for pod in pods)


def total(cards: Iterable[CardMemory]) -> KnownSum:
    return known_sum(card.total_bytes for card in cards)


def cluster_memory(cluster: Cluster) -> ClusterMemory:
    nodes = [_node(node, node.snapshot) for node in cluster.nodes if node.snapshot]
    shown = tuple(node for node in nodes if node.cards or node.pending)
    return ClusterMemory(nodes=shown, waiting=cluster.pending)


def _node(node: ClusterNode, snapshot: Snapshot) -> NodeMemory:
    return NodeMemory(
        name=printable(node.name),
        address=printable(node.address),
        cards=tuple(_card(card) for card in snapshot.cards),
        pending=tuple(_by_pod(_pending(snapshot))),
    )


def _card(card: Card) -> CardMemory:
    whole = _reading(card, TOTAL)
    return CardMemory(
        index=None if card.gpu.index == UNKNOWN else card.gpu.index,
        uuid=card.gpu.uuid,
        total_bytes=whole,
        used_bytes=_reading(card, USED),
        pods=tuple(_by_pod(_containers(card, named=True))),
    )


def _reading(device: Card | Instance, metric: str) -> int | None:
    value = reading(device.readings, metric)
    return None if value is None else int(value)


def _containers(card: Card, *, named: bool) -> Iterator[PodMemory]:
    """Yield what containers have of a card by the claims that name it, or by those that do not."""
    whole = _reading(card, TOTAL)
    for tenant in card.tenants:
        claims = [claim for claim in tenant.claims if _is_named(claim, card) == named]
        if claims:
            ref = tenant.container
            yield PodMemory(
                namespace=ref.namespace,
                name=ref.pod,
                uid=ref.pod_uid,
                allocated_bytes=known_sum(_size(claim, card, whole) for claim in claims).exact,
                used_bytes=0 if tenant.idle else tenant.booking.memory_bytes,
            )


def _is_named(claim: Claim, card: Card) -> bool:
    """Whether anything names the card of a claim. A pod without an index has the numbered card that is the only one."""
    return claim.source != SPEC or card.gpu.index == UNKNOWN


def _size(claim: Claim, card: Card, whole: int | None) -> int | None:
    """The limit of a claim, else the memory of its instance, else its share of the card."""
    if claim.memory_limit_bytes is not None:
        return claim.memory_limit_bytes
    if claim.mig:
        own = (instance for instance in card.instances if instance.mig.uuid == claim.mig)
        return next(map(_instance_size, own), None)
    return int(whole * claim.share) if whole is not None and claim.share else None


def _instance_size(instance: Instance) -> int | None:
    """What it reports itself, else what the name of its profile says."""
    profile = _PROFILE.fullmatch(instance.mig.profile)
    return _reading(instance, TOTAL) or (int(profile["gib"]) * GIB if profile else None)


def _pending(snapshot: Snapshot) -> Iterator[PodMemory]:
    uids = {(pod.namespace, pod.name): pod.uid for pod in snapshot.pods}
    for allocation in snapshot.unclaimed:
        namespace, pod = allocation.namespace, allocation.pod
        uid = uids.get((namespace, pod), "")
        yield PodMemory(namespace=namespace, name=pod, uid=uid, allocated_bytes=allocation.memory_bytes)
    for card in snapshot.cards:
        yield from _containers(card, named=False)


def _by_pod(containers: Iterable[PodMemory]) -> Iterator[PodMemory]:
    """Put the containers of a pod together."""
    by_pod = grouped(containers, lambda container: container.key)
    for (namespace, name, uid), parts in sorted(by_pod.items()):
        yield PodMemory(
            namespace=printable(namespace),
            name=printable(name),
            uid=uid,
            allocated_bytes=allocated(parts).exact,
            used_bytes=known_sum(part.used_bytes for part in parts).exact,
        )
