"""The tenants of nodes and clusters: how busy each was, what it holds, and whether it uses that.

All numbers on a card are of one period. Where the driver's samples leave a doubt, the period is the last full minute,
and the doubt stands beside the number. Else it is the time since the previous reading. A tenant that came within the
minute has no number of it yet: until it has, the whole card is shown by the previous reading.

`--idle.after` is the only threshold of whether a tenant uses what it holds.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from math import isfinite

from msgspec import Struct
from msgspec.structs import replace

from podgpu.insight import certainty
from podgpu.model import (
    Allocation,
    Band,
    Booking,
    Card,
    CardUse,
    Cluster,
    ClusterNode,
    ContainerRef,
    Holding,
    NodeShare,
    Pod,
    Prices,
    Reading,
    Rest,
    Snapshot,
    Tenant,
    Use,
)

NOTHING, WHOLE = Fraction(0), Fraction(1)
SECONDS_PER_HOUR = 3600.0
MINUTE, READING = "minute", "reading"
_PARTS = 1_000_000  # the books count shares in millionths
_KILOWATT = 1000.0  # a millijoule in a microsecond
WORKING, IDLE, WAITING, UNKNOWN = "working", "idle", "waiting", "unknown"
# How a state is known, in words. A sentence about the pod may end with them.
EVIDENCE = {
    "active": "it worked not long ago",
    "no_process": "it has no process on the card",
    "stopped": "its processes do nothing",
    "never_used": "no use of the card was seen",
    "unseen": "whether it has a process on the card is not known",
    "not_measured": "the card does not report who is at work",
    "card_silent": "the card does not answer",
    "start_unknown": "it is not known since when it holds the card",
    "watched_briefly": "the agent has not watched for long enough",
}


class InsightSettings(Struct, frozen=True, kw_only=True):
    """What conclusions depend on besides the facts."""

    idle_after: float  # seconds
    prices: Prices | None = None
    dark_critical: NodeShare = NodeShare(part=0.05)  # from so many dark nodes on, they are critical

    def at(self, moment: float) -> "InsightSettings":
        """Return them with the prices of that moment: prices may change."""
        if self.prices is None or not self.prices.changes:
            return self
        return replace(self, prices=self.prices.at(moment))


class NodeCard(Struct, frozen=True, gc=False):
    """A card on its node. If it is not fresh, only its existence and its holders count, if dark as last heard."""

    snapshot: Snapshot
    card: Card
    is_fresh: bool = True
    node: ClusterNode | None = None
    place: int = 0  # among the cards of its node

    @property
    def node_name(self) -> str:
        return self.node.name if self.node else self.snapshot.node

    @property
    def is_dark(self) -> bool:
        """Whether its node is dark: what is said of it is what was last heard."""
        return self.node is not None and self.node.is_dark

    @property
    def is_stored(self) -> bool:
        """Whether it is read from a store: there are no processes, claims and other evidence."""
        return self.snapshot.stored or (self.node is not None and self.node.origin == "store")

    @property
    def is_cordoned(self) -> bool:
        """Whether no pod can be placed on it, though nobody may hold it."""
        return self.node is not None and bool(self.node.cordoned)

    @property
    def key(self) -> tuple[str, str, int]:
        """Cards of which only Kubernetes knows have no UUID. Those without a number too are told by their place."""
        gpu = self.card.gpu
        return self.node_name, gpu.uuid, gpu.index if gpu.uuid or gpu.index >= 0 else -1 - self.place


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

    @property
    def state(self) -> str:
        """Whether it uses what it holds; empty if it holds nothing."""
        return self.tenant.holding.state if self.tenant.holding else ""

    @property
    def cost_per_hour(self) -> float | None:
        return self.tenant.holding.cost_per_hour if self.tenant.holding else None

    @property
    def idle_seconds(self) -> float | None:
        return idle_seconds(self.tenant.holding, self.on.snapshot.taken_at)

    @property
    def idle_cost(self) -> float | None:
        """From when it became idle until now."""
        rate, seconds = self.cost_per_hour, self.idle_seconds
        return None if rate is None or seconds is None else rate * seconds / SECONDS_PER_HOUR


def gpu_numbers(places: Iterable[Placement]) -> list[str]:
    """List the numbers of the cards, each once, in order."""
    return [number for _, number in sorted({(place.on.card.gpu.index, place.on.card.gpu.number) for place in places})]


def is_outsider(container: ContainerRef | Allocation) -> bool:
    """Whether it is outside Kubernetes: an account without a pod. Its container is then its title: `docker/web`."""
    return not container.namespace and not container.pod


def pod_name(container: ContainerRef) -> str:
    return container.container if is_outsider(container) else f"{container.namespace}/{container.pod}"


def cards_of_snapshot(snapshot: Snapshot) -> list[NodeCard]:
    return [NodeCard(snapshot, card) for card in snapshot.cards]


def cards_of_node(node: ClusterNode) -> list[NodeCard]:
    if node.snapshot is None:
        return []
    is_fresh = node.state == "fresh"
    return [NodeCard(node.snapshot, card, is_fresh, node, place) for place, card in enumerate(node.snapshot.cards)]


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
    if not all(claim.share for claim in tenant.claims):  # a claim of 0 is one of unknown size
        return None
    share = min(WHOLE, sum((exact(claim.share) for claim in tenant.claims), NOTHING))
    if not tenant.mig:
        return share
    instances = (instance.mig.multiprocessors for instance in card.instances if instance.mig.uuid == tenant.mig)
    cores, of_card = next(instances, None), card.gpu.multiprocessors
    return share * cores / of_card if cores and of_card else None


def reading(readings: Iterable[Reading], metric: str) -> float | None:
    """Of several readings of one name, such as a card's temperatures, the first speaks for the card."""
    return next((reading.value for reading in readings if reading.metric == metric and isfinite(reading.value)), None)


@lru_cache(maxsize=4096)
def exact(share: float) -> Fraction:
    """Return what the number was before it was rounded to fit into a float: millionths, or a part such as a third."""
    return Fraction(share).limit_denominator(_PARTS)


def idle_seconds(found: Holding | None, now: float) -> float | None:
    """How long it has been idle; None in any other state."""
    if found is None or found.state != IDLE or found.since is None:
        return None
    return max(now - found.since, 0.0)


def judged(card: Card, snapshot: Snapshot, settings: InsightSettings) -> Card:
    """Return the card with the use of everything on it, and with what tenants do with what they hold."""
    is_minute = _is_minute(card)
    tenants = [
        replace(
            tenant,
            use=_use(tenant.booking, card, is_minute=is_minute),
            holding=_holding(tenant, card, snapshot, settings),
        )
        for tenant in card.tenants
    ]
    return replace(
        card,
        use=_card_use(card, snapshot, is_minute=is_minute),
        tenants=tuple(tenants),
        rest=tuple([replace(rest, use=_use(rest, card, is_minute=is_minute)) for rest in card.rest]),
    )


def _is_minute(card: Card) -> bool:
    bands = [tenant.booking.band for tenant in card.tenants]
    whole = card.balance.band if card.balance else None
    return whole is not None and None not in bands and any(band and band.is_wide for band in bands)


def _card_use(card: Card, snapshot: Snapshot, *, is_minute: bool) -> CardUse | None:
    if card.fault is not None:  # unknown, whatever was known before
        return None
    balance, power = card.balance, reading(card.readings, "power_watts")
    if is_minute and balance is not None and balance.band is not None:
        use = _of_band(balance.band, card)
        watts = power if use.watts is None else use.watts
        return CardUse(period=MINUTE, ratio=use.ratio, watts=watts, note=certainty.note(card, snapshot))
    ratio = balance.busy_ratio if balance else None
    if ratio is None:  # it will do where nothing is booked
        ratio = reading(card.readings, "utilization_ratio")
    return CardUse(period=READING, ratio=ratio, watts=power, note=certainty.note(card, snapshot))


def _use(booked: Booking | Rest, card: Card, *, is_minute: bool) -> Use | None:
    if card.fault is not None:
        return None
    if not is_minute:
        return _of_reading(booked)
    return _of_band(booked.band, card) if booked.band is not None else Use()


def _of_band(band: Band, card: Card) -> Use:
    if not band.elapsed_us:
        return Use()
    watts = band.booked_mj / band.elapsed_us * _KILOWATT if card.ability.counts_energy else None
    return certainty.use_of(band, watts)


def _of_reading(booked: Booking | Rest) -> Use:
    if booked.sm_ratio is None:
        return Use(watts=booked.power_watts)
    method, is_idle = ("", False) if isinstance(booked, Rest) else (booked.method, booked.processes == 0)
    return Use(booked.sm_ratio, watts=booked.power_watts, certainty=certainty.of_method(method, is_idle=is_idle))


def _holding(tenant: Tenant, card: Card, snapshot: Snapshot, settings: InsightSettings) -> Holding | None:
    """Return None if the tenant holds nothing."""
    if not is_holder(tenant):
        return None
    state, evidence, since = _state(tenant, card, snapshot, settings.idle_after)
    price = settings.prices.of(card.gpu.model) if settings.prices else None
    share = held_share(tenant, card)
    cost = None if price is None or share is None else float(share) * price
    return Holding(state=state, evidence=evidence, since=since, cost_per_hour=cost)


def _state(tenant: Tenant, card: Card, snapshot: Snapshot, idle_after: float) -> tuple[str, str, float | None]:
    """Return the state, the evidence, and since when it is idle or waiting."""
    now = snapshot.taken_at
    if card.fault is not None:
        return UNKNOWN, "card_silent", None
    if not tenant.idle and tenant.booking.sm_ratio is None:
        is_missed = tenant.idle is None and card.ability.sees_processes
        return UNKNOWN, "unseen" if is_missed else "not_measured", None
    last = now if tenant.booking.sm_ratio and not tenant.idle else tenant.booking.last_active_at
    if last is not None:
        if now - last < idle_after:
            return WORKING, "active", None
        return IDLE, "no_process" if tenant.idle else "stopped", last
    evidence, held = "no_process" if tenant.idle else "never_used", tenant.held_since
    if held is None:
        return UNKNOWN, "start_unknown", None
    # What was used before the agent began to watch is not known.
    since = held if snapshot.watched_since is None else max(held, snapshot.watched_since)
    if now - since >= idle_after:
        return IDLE, evidence, since
    if since == held:
        return WAITING, evidence, held
    return UNKNOWN, "watched_briefly", None
