"""How much memory of each card was given to whom: the figures behind `podgpu inspect`, in bytes.

What is not known is None. A sum leaves it out, and says that it does.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from podgpu.model import (
    UNKNOWN,
    Card,
    Claim,
    Cluster,
    ClusterNode,
    ContainerRef,
    Instance,
    PendingPod,
    Snapshot,
    Tenant,
)
from podgpu.views.text import printable

TOTAL, USED = "memory_total_bytes", "memory_used_bytes"
GIB = 1 << 30

_PROFILE = re.compile(r"[0-9]+g\.(?P<gib>[0-9]+)gb.*")


class PodHolding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one pod was given of one card, or of none that is known."""

    namespace: str
    name: str
    uid: str = ""
    allocated_bytes: int | None = None
    used_bytes: int | None = None


class CardHolding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`index` is None, and `uuid` empty, if not known."""

    index: int | None = None
    uuid: str = ""
    total_bytes: int | None = None
    used_bytes: int | None = None
    pods: tuple[PodHolding, ...] = ()


class NodeHolding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`pending` are pods that the node runs, or is about to run, and that no card is known of."""

    name: str
    address: str = ""
    cards: tuple[CardHolding, ...] = ()
    pending: tuple[PodHolding, ...] = ()


class Holdings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`waiting` are pods without a node."""

    nodes: tuple[NodeHolding, ...] = ()
    waiting: tuple[PendingPod, ...] = ()


class Amount(Struct, frozen=True):
    """A sum of what is known, and whether something is missing in it."""

    size: int = 0
    is_whole: bool = True


def holdings(cluster: Cluster) -> Holdings:
    nodes = [_node(one, one.snapshot) for one in cluster.nodes if one.snapshot]
    return Holdings(nodes=tuple(one for one in nodes if one.cards or one.pending), waiting=cluster.pending)


def amount(sizes: Iterable[int | None]) -> Amount:
    found = tuple(sizes)
    return Amount(sum(one for one in found if one is not None), None not in found)


def allocated(pods: Iterable[PodHolding]) -> Amount:
    return amount(one.allocated_bytes for one in pods)


def of_node(node: NodeHolding) -> Amount:
    return allocated((*(pod for card in node.cards for pod in card.pods), *node.pending))


def total(cards: Iterable[CardHolding]) -> Amount:
    return amount(card.total_bytes for card in cards)


def used(cards: Iterable[CardHolding]) -> Amount:
    return amount(card.used_bytes for card in cards)


def _node(node: ClusterNode, snapshot: Snapshot) -> NodeHolding:
    return NodeHolding(
        name=printable(node.name),
        address=printable(node.address),
        cards=tuple(_card(card) for card in snapshot.cards),
        pending=tuple(_joined(_pending(snapshot))),
    )


def _card(card: Card) -> CardHolding:
    whole = _reading(card, TOTAL)
    return CardHolding(
        index=None if card.gpu.index == UNKNOWN else card.gpu.index,
        uuid=card.gpu.uuid,
        total_bytes=whole,
        used_bytes=_reading(card, USED),
        pods=tuple(_joined(_holding(one, card, whole) for one in card.tenants if one.claims)),
    )


def _reading(of: Card | Instance, metric: str) -> int | None:
    return next((int(one.value) for one in of.readings if one.metric == metric and not one.labels), None)


def _of_instance(instance: Instance) -> int | None:
    """What it has by its own account, else by the name of its profile."""
    found = _PROFILE.fullmatch(instance.mig.profile)
    return _reading(instance, TOTAL) or (int(found["gib"]) * GIB if found else None)


def _holding(tenant: Tenant, card: Card, whole: int | None) -> PodHolding:
    given = amount(_size(claim, card, whole) for claim in tenant.claims)
    who = tenant.container
    return PodHolding(
        namespace=who.namespace,
        name=who.pod,
        uid=who.pod_uid,
        allocated_bytes=given.size if given.is_whole else None,
        used_bytes=0 if tenant.idle else tenant.booking.memory_bytes,
    )


def _size(claim: Claim, card: Card, whole: int | None) -> int | None:
    """The limit of a claim, else the memory of its instance, else its share of the card."""
    if claim.memory_limit_bytes is not None:
        return claim.memory_limit_bytes
    if claim.mig:
        return next((_of_instance(one) for one in card.instances if one.mig.uuid == claim.mig), None)
    return int(whole * claim.share) if whole is not None and claim.share else None


def _pending(snapshot: Snapshot) -> Iterator[PodHolding]:
    uids = {(pod.namespace, pod.name): pod.uid for pod in snapshot.pods}
    for one in snapshot.unclaimed:
        who = ContainerRef(one.namespace, one.pod, one.container)
        yield PodHolding(
            namespace=who.namespace,
            name=who.pod,
            uid=uids.get((who.namespace, who.pod), ""),
            allocated_bytes=one.memory_bytes,
        )


def _joined(found: Iterable[PodHolding]) -> Iterator[PodHolding]:
    """Put the containers of a pod together."""
    by_pod: dict[tuple[str, str, str], list[PodHolding]] = {}
    for one in found:
        by_pod.setdefault((one.namespace, one.name, one.uid), []).append(one)
    for (namespace, name, uid), parts in sorted(by_pod.items()):
        yield PodHolding(
            namespace=printable(namespace),
            name=printable(name),
            uid=uid,
            allocated_bytes=_sum([one.allocated_bytes for one in parts]),
            used_bytes=_sum([one.used_bytes for one in parts]),
        )


def _sum(sizes: Sequence[int | None]) -> int | None:
    found = amount(sizes)
    return found.size if found.is_whole else None
