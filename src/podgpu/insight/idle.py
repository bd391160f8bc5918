"""Which pods hold a GPU and do not use it, since when, and what that costs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from podgpu.catalog.agent_parts import PODRESOURCES
from podgpu.insight import conclude_cluster, conclude_node
from podgpu.insight.rows import card_numbers
from podgpu.insight.selection import EVERYTHING, PodSelection
from podgpu.insight.tenants import (
    IDLE,
    UNKNOWN,
    InsightSettings,
    Placement,
    cards_of,
    held_share,
    placements,
)
from podgpu.insight.waste import waste_of
from podgpu.model import Card, Cluster, ClusterNode, Tenant, WasteRow
from podgpu.model.kube import grouped, only, total, total_of_known
from podgpu.numbers import count, gpus, money


class PlaceKey(NamedTuple):
    """A container on a card or MIG instance, as series name it; a card where what names a container is empty."""

    node: str
    uuid: str
    mig: str = ""
    namespace: str = ""
    pod: str = ""
    container: str = ""

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> "PlaceKey":
        return cls(*(labels.get(name, "") for name in cls._fields))


class IdleRow(Struct, frozen=True, kw_only=True):
    """One pod on one node, with all GPUs that it holds and does not use. Absent is what is not known."""

    namespace: str  # of the pod; empty outside Kubernetes
    pod: str  # its name
    workload_kind: str = ""  # what it was made for
    workload_name: str = ""
    node: str = ""  # where it is
    gpus: tuple[str, ...] = ()  # the driver's numbers of the cards, with the profile of a MIG instance
    model: str = ""  # of the cards; empty if mixed
    held_gpus: float | None = None  # what it holds of them, in whole cards
    memory_used_bytes: int | None = None  # what its processes keep there
    processes: int | None = None  # how many it has there
    idle_since: float | None = None  # seconds since 1970: last use, or since it was seen to hold them
    idle_seconds: float | None = None  # the same as a duration
    ever_used: bool = False  # whether it is known to have used one of them at all
    watched_since: float | None = None  # if it held them before and no use is known: since when that is watched
    cost_per_hour: float | None = None  # of what it holds
    cost: float | None = None  # from then until now


class IdlePods(Struct, frozen=True):
    """`unknown` counts pods for which it is unknown whether they use what they hold; `unread` and `unseen` are nodes.

    An unseen node was read, but shows no GPU, or nobody who holds one because the kubelet does not tell.
    """

    rows: tuple[IdleRow, ...] = ()
    unknown: int = 0
    unread: tuple[str, ...] = ()
    unpriced: tuple[str, ...] = ()  # models
    waste: tuple[WasteRow, ...] = ()  # the rows by team or namespace, in sentences
    unseen: tuple[str, ...] = ()

    def in_all(self, currency: str) -> str:
        """Add the rows up in a sentence; empty without rows."""
        if not self.rows:
            return ""
        held, cost = [row.held_gpus for row in self.rows], [row.cost for row in self.rows]
        size, price = total_of_known(held), total_of_known(cost)
        holds = "shares that are not known" if size is None else f"{_least(held)}{gpus(size)}"
        spent = "" if price is None or not currency else f", {_least(cost)}{money(price, currency)} so far"
        pods = len(self.rows)
        return f"In all, {count(pods, 'pod')} {'holds' if pods == 1 else 'hold'} {holds} without use{spent}."


def _least(parts: Sequence[float | None]) -> str:
    return "at least " if None in parts else ""


def idle_pods(cluster: Cluster, chosen: PodSelection = EVERYTHING) -> IdlePods:
    """List the pods that were concluded to be idle. What costs most comes first."""
    held = list(_held(cluster, chosen))
    unknown = {place.pod_key for place in held if place.state == UNKNOWN}
    idle = [place for place in held if place.state == IDLE]
    pods = grouped(idle, lambda place: place.pod_key)
    rows = sorted((_idle_row(key, places) for key, places in pods.items()), key=_rank)
    currency = cluster.insight.currency if cluster.insight else ""
    models = {place.on.card.gpu.model for place in idle if place.cost_per_hour is None}
    unread = tuple(node.name for node in cluster.nodes if node.state != "fresh")
    unpriced = tuple(sorted(model or "unknown" for model in models)) if currency else ()
    waste = waste_of(idle, cluster.taken_at, currency)
    unseen = tuple(node.name for node in cluster.nodes if node.state == "fresh" and not _shows_holders(node))
    return IdlePods(tuple(rows), len(unknown - pods.keys()), unread, unpriced, waste, unseen)


def _shows_holders(node: ClusterNode) -> bool:
    snapshot = node.snapshot
    if snapshot is None or not snapshot.cards:
        return False
    return not any(part.name == PODRESOURCES.name and not part.up for part in snapshot.parts)


def candidates(cluster: Cluster, chosen: PodSelection = EVERYTHING) -> dict[PlaceKey, float]:
    """Return the tenants that seem idle, and since when they hold their GPU, to look them up in a store."""
    return {
        _key(place.tenant, place.on.card, place.on.snapshot.node): place.tenant.held_since or 0.0
        for place in _held(cluster, chosen)
        if place.state == IDLE
    }


def with_last_use(cluster: Cluster, last_use: Mapping[PlaceKey, float], settings: InsightSettings) -> Cluster:
    """Conclude again with what a store remembers of the last use: an agent forgets it when it restarts."""

    def of_tenant(tenant: Tenant, card: Card, node: str) -> Tenant:
        at = last_use.get(_key(tenant, card, node))
        # A pod of the same name that was there before may have worked; that was not this one.
        if at is None or at < (tenant.held_since or 0.0) or at < (tenant.booking.last_active_at or 0.0):
            return tenant
        return replace(tenant, booking=replace(tenant.booking, last_active_at=at))

    def of_card(card: Card, node: str) -> Card:
        return replace(card, tenants=tuple([of_tenant(tenant, card, node) for tenant in card.tenants]))

    def of_node(node: ClusterNode) -> ClusterNode:
        if node.snapshot is None:
            return node
        cards = tuple([of_card(card, node.snapshot.node) for card in node.snapshot.cards])
        snapshot = replace(node.snapshot, cards=cards, insight=None)
        return conclude_node(replace(node, snapshot=snapshot), settings)

    return conclude_cluster(replace(cluster, nodes=tuple(map(of_node, cluster.nodes))), settings)


def _key(tenant: Tenant, card: Card, node: str) -> PlaceKey:
    ref = tenant.container
    return PlaceKey(node, card.gpu.uuid, tenant.mig, ref.namespace, ref.pod, ref.container)


def _held(cluster: Cluster, chosen: PodSelection) -> Iterator[Placement]:
    """Only nodes that were read just now: an old snapshot says nothing about now."""
    for place in placements(cards_of(cluster)):
        if place.on.is_fresh and place.tenant.holding is not None and chosen.takes(place):
            yield place


def _idle_row(key: tuple[str, ...], places: list[Placement]) -> IdleRow:
    node, namespace, pod, _ = key
    tenants = [place.tenant for place in places]
    made_for = tenants[0].workload
    shares = [held_share(place.tenant, place.on.card) for place in places]
    ever_used = any(tenant.booking.last_active_at is not None for tenant in tenants)
    return IdleRow(
        namespace=namespace,
        pod=pod,
        workload_kind=made_for.kind if made_for else "",
        workload_name=made_for.name if made_for else "",
        node=node,
        gpus=card_numbers(places),
        model=only(place.on.card.gpu.model for place in places),
        held_gpus=total(None if share is None else float(share) for share in shares),
        memory_used_bytes=total(tenant.booking.memory_bytes for tenant in tenants),
        processes=total(tenant.booking.processes for tenant in tenants),
        idle_since=_if_all((tenant.holding.since for tenant in tenants if tenant.holding), max),
        idle_seconds=_if_all((place.idle_seconds for place in places), min),
        ever_used=ever_used,
        watched_since=None if ever_used else _watched_since(places),
        cost_per_hour=total(place.cost_per_hour for place in places),
        cost=total(place.idle_cost for place in places),
    )


def _watched_since(places: Iterable[Placement]) -> float | None:
    """Return when the watching began, if that was after the pod did; None if it was watched all the time."""
    for place in places:
        began, held = place.on.snapshot.watched_since, place.tenant.held_since
        if began is not None and (held is None or held < began):
            return began
    return None


def _if_all(values: Iterable[float | None], choose: Callable[[list[float]], float]) -> float | None:
    found = list(values)
    known = [value for value in found if value is not None]
    return choose(known) if known and len(known) == len(found) else None


def _rank(row: IdleRow) -> tuple[float, float, str, str]:
    """Without prices, what is held for longest comes first."""
    held = (row.held_gpus or 0.0) * (row.idle_seconds or 0.0)
    return -(row.cost or 0.0), -held, row.namespace, row.pod
