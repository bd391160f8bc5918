"""Everybody on a GPU of the cluster: the tree of nodes, cards and tenants as a list."""

from collections.abc import Iterator

from msgspec import Struct

from podgpu.model import Card, Cluster, ClusterNode, Pod, Snapshot, Tenant
from podgpu.views.glance import Glance, Use, Uses, glance


class Seat(Struct, frozen=True, gc=False):
    """A card in its node."""

    node: ClusterNode
    snapshot: Snapshot
    card: Card
    seen: Glance
    uses: Uses

    @property
    def use(self) -> Use:
        return self.uses.of_card

    @property
    def key(self) -> str:
        return f"{self.node.name}/{self.card.gpu.uuid}"


class Place(Struct, frozen=True, gc=False):
    """A tenant on its card. `pod` is absent outside Kubernetes, or where no list of pods has it."""

    seat: Seat
    tenant: Tenant
    pod: Pod | None

    @property
    def use(self) -> Use:
        return self.seat.uses.of_tenant(self.tenant)


def seats(cluster: Cluster) -> Iterator[Seat]:
    for node in cluster.nodes:
        if node.snapshot is not None:
            yield from _seats_of(node, node.snapshot)


def places(seats: Iterator[Seat]) -> Iterator[Place]:
    """List the tenants, card by card."""
    pods: dict[tuple[str, str, str], Pod] = {}
    of: Snapshot | None = None
    for seat in seats:
        if seat.snapshot is not of:
            of = seat.snapshot
            pods = {(one.namespace, one.name, one.uid): one for one in of.pods}
        for tenant in seat.card.tenants:
            ref = tenant.container
            yield Place(seat, tenant, pods.get((ref.namespace, ref.pod, ref.pod_uid)))


def _seats_of(node: ClusterNode, snapshot: Snapshot) -> Iterator[Seat]:
    for card in snapshot.cards:
        seen = glance(card.readings)
        yield Seat(node, snapshot, card, seen, Uses(card, seen.utilization_ratio))
