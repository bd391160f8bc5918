"""Who holds a GPU and does not use it, since when, and what that costs: by team or namespace, and by pod."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from shlex import quote
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from podgpu.catalog.agent_parts import PODRESOURCES
from podgpu.insight import conclude_cluster, conclude_node
from podgpu.insight.rows import card_numbers
from podgpu.insight.selection import EVERYTHING, PodSelection
from podgpu.insight.tenants import (
    EVIDENCE,
    IDLE,
    NOTHING,
    UNKNOWN,
    InsightSettings,
    Placement,
    cards_of,
    gpu_numbers,
    held_share,
    is_outsider,
    placements,
    pod_name,
)
from podgpu.model import Card, Cluster, ClusterNode, Tenant
from podgpu.model.kube import grouped, only, total, total_of_known
from podgpu.numbers import count, gpus, integer, moment, money, since

TEAM = "team"  # the label of pods that names their team
MOST_NAMED = 10  # pods in a message
ASKED = "Please scale down what is not needed."
NAMESPACE, OUTSIDE = "namespace", "outside"


class WasteRow(Struct, frozen=True, kw_only=True):
    """What one team or namespace holds and does not use."""

    by: str  # `team`, by the label of that name; `namespace`, where pods have none; `outside` Kubernetes
    name: str  # of the team, the namespace or the account
    gpus: float  # shares that it holds and does not use, in whole cards, as far as they are known
    pods: int  # that hold them
    since: float | None = None  # seconds since 1970: when the first of them became idle
    cost_per_hour: float | None = None  # of that; absent without prices
    cost: float | None = None  # from when each became idle until now
    text: str  # one sentence
    message: str  # to the owner


def waste_of(idle: Iterable[Placement], now: float, currency: str) -> tuple[WasteRow, ...]:
    """Add up what is idle, most first."""
    rows = [_waste_row(owner, places, now, currency) for owner, places in grouped(idle, _owner).items()]
    return tuple(sorted(rows, key=lambda row: (-(row.cost_per_hour or 0.0), -row.gpus, row.by, row.name)))


def _owner(place: Placement) -> tuple[str, str]:
    ref = place.tenant.container
    if is_outsider(ref):
        return OUTSIDE, ref.container
    team = place.pod.labels.get(TEAM) if place.pod else None
    return (TEAM, team) if team else (NAMESPACE, ref.namespace)


def _waste_row(owner: tuple[str, str], places: Sequence[Placement], now: float, currency: str) -> WasteRow:
    by, name = owner
    held = float(sum((held_share(place.tenant, place.on.card) or NOTHING for place in places), NOTHING))
    starts = [place.tenant.holding.since for place in places if place.tenant.holding]
    first = min((start for start in starts if start is not None), default=None)
    pods = grouped(places, lambda place: place.pod_key)
    cost = total(place.cost_per_hour for place in places)
    what = gpus(held) if held else "a share of a GPU"
    price = f", {money(cost, currency)} an hour" if cost is not None and currency else ""
    began = f", {'the first ' if len(set(starts)) > 1 else ''}since {since(first, now)}" if first else ""
    title = f"Team {name}" if by == TEAM else name
    text = f"{title} holds {what} without using {'it' if held <= 1 else 'them'}{price}{began}."
    how = f"How this is known: podgpu why {quote(pod_name(places[0].tenant.container))}"
    return WasteRow(
        by=by,
        name=name,
        gpus=held,
        pods=len(pods),
        since=first,
        cost_per_hour=cost,
        cost=total(place.idle_cost for place in places),
        text=text,
        message="\n".join((text, "", *_pods(list(pods.values())), "", ASKED, how)),
    )


def _pods(pods: Sequence[Sequence[Placement]]) -> list[str]:
    lines = [f"- {_where(places)}: {_why(places[0])}" for places in pods[:MOST_NAMED]]
    more = len(pods) - MOST_NAMED
    return [*lines, *([f"- and {integer(more)} more"] if more > 0 else [])]


def _where(places: Sequence[Placement]) -> str:
    numbers = gpu_numbers(places)
    cards = f"GPU {numbers[0]}" if len(numbers) == 1 else f"{count(len(numbers), 'GPU')}"
    return f"{pod_name(places[0].tenant.container)} on {places[0].on.node_name}, {cards}"


def _why(place: Placement) -> str:
    held = place.tenant.holding
    if held is None:
        return "not used"
    began = f"not used since {moment(held.since)}, " if held.since is not None else ""
    return f"{began}{EVIDENCE.get(held.evidence, held.evidence)}"


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
