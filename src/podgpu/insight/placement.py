"""The tree of nodes, cards and tenants as lists: what sums and problems walk."""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from math import isfinite

from msgspec import Struct

from podgpu.model import Card, Cluster, ClusterNode, ContainerRef, Pod, Reading, Snapshot, Tenant

NOTHING, WHOLE = Fraction(0), Fraction(1)
_PARTS = 1_000_000  # the books count shares in millionths


class NodeCard(Struct, frozen=True, gc=False):
    """A card on its node. Of one that is not fresh, only what there is and who holds it counts."""

    snapshot: Snapshot
    card: Card
    is_fresh: bool = True
    node: ClusterNode | None = None

    @property
    def node_name(self) -> str:
        return self.node.name if self.node else self.snapshot.node

    @property
    def key(self) -> tuple[str, str, int]:
        """Cards of which only Kubernetes knows have no UUID."""
        return self.node_name, self.card.gpu.uuid, self.card.gpu.index


class Placement(Struct, frozen=True, gc=False):
    """A tenant on its card. `pod` is absent outside Kubernetes, or where no list of pods has it."""

    on: NodeCard
    tenant: Tenant
    pod: Pod | None = None

    @property
    def pod_key(self) -> tuple[str, ...]:
        """A pod is on one node. Should two nodes claim the same one, they are two."""
        ref = self.tenant.container
        if is_outsider(ref):
            return self.on.node_name, "", ref.container, ""
        return self.on.node_name, ref.namespace, ref.pod, ref.pod_uid


def is_outsider(container: ContainerRef) -> bool:
    """Whether it is outside Kubernetes: an account without a pod."""
    return not container.namespace and not container.pod


def pod_name(container: ContainerRef) -> str:
    return container.container if is_outsider(container) else f"{container.namespace}/{container.pod}"


def cards_of_snapshot(snapshot: Snapshot) -> list[NodeCard]:
    return [NodeCard(snapshot, card) for card in snapshot.cards]


def cards_of_node(node: ClusterNode) -> list[NodeCard]:
    if node.snapshot is None:
        return []
    is_fresh = node.state == "fresh"
    return [NodeCard(node.snapshot, card, is_fresh, node) for card in node.snapshot.cards]


def cards_of(cluster: Cluster) -> Iterator[NodeCard]:
    for node in cluster.nodes:
        yield from cards_of_node(node)


def placements(cards: Iterable[NodeCard]) -> Iterator[Placement]:
    """List the tenants, card by card."""
    pods: dict[tuple[str, str, str], Pod] = {}
    snapshot: Snapshot | None = None
    for on in cards:
        if on.snapshot is not snapshot:
            snapshot = on.snapshot
            pods = {(pod.namespace, pod.name, pod.uid): pod for pod in snapshot.pods}
        for tenant in on.card.tenants:
            ref = tenant.container
            yield Placement(on, tenant, pods.get((ref.namespace, ref.pod, ref.pod_uid)))


def is_holder(tenant: Tenant) -> bool:
    """A store may know the share and not the claim."""
    return bool(tenant.claims) or tenant.booking.allocated_ratio is not None


def held_share(tenant: Tenant, card: Card) -> Fraction | None:
    """Return the share of the card that the tenant was given. None if its size is not known."""
    if tenant.booking.allocated_ratio is not None:
        return exact(tenant.booking.allocated_ratio)
    if not tenant.claims:
        return NOTHING
    share = min(WHOLE, sum((exact(claim.share) for claim in tenant.claims), NOTHING))
    if not share:  # a claim of 0 is one of unknown size
        return None
    if not tenant.mig:
        return share
    own = next(
        (instance.mig.multiprocessors for instance in card.instances if instance.mig.uuid == tenant.mig), None
    )
    return share * own / card.gpu.multiprocessors if own and card.gpu.multiprocessors else None


def reading(readings: Iterable[Reading], metric: str) -> float | None:
    """Of several readings of one name, such as a card's temperatures, the first speaks for the card."""
    return next(
        (reading.value for reading in readings if reading.metric == metric and isfinite(reading.value)), None
    )


@lru_cache(maxsize=4096)
def exact(share: float) -> Fraction:
    """Return what the number was before it was rounded to fit into a float: millionths, or a part such as a third."""
    return Fraction(share).limit_denominator(_PARTS)
