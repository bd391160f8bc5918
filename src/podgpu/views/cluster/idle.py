"""Who holds a GPU and does not use it, since when, and what that costs."""

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from podgpu.model import Cluster, Prices, Tenant
from podgpu.model.quantity import total
from podgpu.views.cluster.places import Place, places, seats
from podgpu.views.cluster.selection import EVERYTHING, Selection
from podgpu.views.outsider import is_outsider
from podgpu.views.tenant import idle_seconds

SECONDS_PER_HOUR = 3600.0


class PlaceKey(Struct, frozen=True):
    """A container on a card or MIG instance, as series name it."""

    node: str
    uuid: str
    mig: str
    namespace: str
    pod: str
    container: str


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
    idle_since: float | None = None  # seconds since 1970: last use of any of them, or the pod's start
    idle_seconds: float | None = None  # the same as a duration
    ever_used: bool = False  # whether it is known to have used one of them at all
    cost_per_hour: float | None = None  # of what it holds
    cost: float | None = None  # from then until now


class Idlers(Struct, frozen=True):
    """`unknown` counts pods of which nobody knows whether they use what they hold; `unread` are nodes."""

    rows: tuple[IdleRow, ...] = ()
    unknown: int = 0
    unread: tuple[str, ...] = ()
    unpriced: tuple[str, ...] = ()  # models


class _Idle(Struct, frozen=True):
    place: Place
    since: float | None
    seconds: float | None
    used: bool


def idlers(
    cluster: Cluster,
    least_seconds: float,
    *,
    chosen: Selection = EVERYTHING,
    prices: Prices | None = None,
    last_use: Mapping[PlaceKey, float] | None = None,
) -> Idlers:
    """`last_use` is what a store remembers: an agent forgets it when it starts anew."""
    found: dict[tuple[str, ...], list[_Idle]] = {}
    unknown = set()
    for place in _held(cluster, chosen):
        key = _pod_key(place)
        idle = _judged(place, (last_use or {}).get(key_of(place)))
        if idle is None:
            unknown.add(key)
        elif idle.seconds is None or idle.seconds >= least_seconds:
            found.setdefault(key, []).append(idle)
    rows = [_row(key, own, prices) for key, own in found.items()]
    rows.sort(key=_rank)
    models = {idle.place.seat.card.gpu.model for own in found.values() for idle in own}
    unpriced = sorted(one or "unknown" for one in models if prices and prices.of(one) is None)
    unread = tuple(node.name for node in cluster.nodes if node.state != "fresh")
    return Idlers(tuple(rows), len(unknown), unread, tuple(unpriced))


def candidates(
    cluster: Cluster, least_seconds: float, chosen: Selection = EVERYTHING
) -> dict[PlaceKey, float]:
    """Return those that seem idle, and since when they hold their GPU: whom to ask a store about."""
    found = {}
    for place in _held(cluster, chosen):
        idle = _judged(place, None)
        if idle is not None and (idle.seconds is None or idle.seconds >= least_seconds):
            found[key_of(place)] = place.tenant.held_since or 0.0
    return found


def key_of(place: Place) -> PlaceKey:
    ref, gpu = place.tenant.container, place.seat.card.gpu
    node = place.seat.snapshot.node
    return PlaceKey(node, gpu.uuid, place.tenant.mig, ref.namespace, ref.pod, ref.container)


def _held(cluster: Cluster, chosen: Selection) -> Iterable[Place]:
    """Only nodes that were read just now: an old look says nothing about now."""
    for place in places(seats(cluster)):
        is_read = place.seat.node.state == "fresh" and not place.seat.card.fault
        is_held = bool(place.tenant.claims or place.tenant.booking.allocated_ratio)
        if is_read and is_held and chosen.takes(place):
            yield place


def _judged(place: Place, remembered: float | None) -> _Idle | None:
    """Return since when the place is idle: for no time at all if it is in use, None if nobody can know."""
    tenant, now = place.tenant, place.seat.snapshot.taken_at
    if not _is_known(tenant):
        return None
    booked = tenant.booking.last_active_at
    # A pod of the same name that was there before may have worked; that was not this one.
    old = remembered if remembered is not None and remembered >= (tenant.held_since or 0.0) else None
    uses = [one for one in (booked, old) if one is not None]
    if uses:
        return _Idle(place, max(uses), max(now - max(uses), 0.0), used=True)
    seconds = idle_seconds(tenant, now)
    return _Idle(place, None if seconds is None else now - seconds, seconds, used=False)


def _is_known(tenant: Tenant) -> bool:
    return bool(tenant.idle) or tenant.booking.sm_ratio is not None


def _pod_key(place: Place) -> tuple[str, ...]:
    ref = place.tenant.container
    node = place.seat.snapshot.node
    return (node, "", ref.container, "") if is_outsider(ref) else (node, ref.namespace, ref.pod, ref.pod_uid)


def _row(key: tuple[str, ...], own: list[_Idle], prices: Prices | None) -> IdleRow:
    node, namespace, pod, _ = key
    tenants = [idle.place.tenant for idle in own]
    made_for = tenants[0].workload
    models = {idle.place.seat.card.gpu.model for idle in own}
    seconds = [idle.seconds for idle in own]
    since = [idle.since for idle in own]
    return IdleRow(
        namespace=namespace,
        pod=pod,
        workload_kind=made_for.kind if made_for else "",
        workload_name=made_for.name if made_for else "",
        node=node,
        gpus=tuple(sorted({_gpu(idle.place) for idle in own})),
        model=models.pop() if len(models) == 1 else "",
        held_gpus=total(one.booking.allocated_ratio for one in tenants),
        memory_used_bytes=total(one.booking.memory_bytes for one in tenants),
        processes=total(one.booking.processes for one in tenants),
        idle_since=_if_all(since, max),
        idle_seconds=_if_all(seconds, min),
        ever_used=any(idle.used for idle in own),
        cost_per_hour=total(_price(idle, prices) for idle in own),
        cost=total(_cost(idle, prices) for idle in own),
    )


def _gpu(place: Place) -> str:
    profile = next(
        (one.mig.profile for one in place.seat.card.instances if one.mig.uuid == place.tenant.mig), ""
    )
    index = str(place.seat.card.gpu.index)
    return f"{index}/{profile}" if profile else index


def _price(idle: _Idle, prices: Prices | None) -> float | None:
    share = idle.place.tenant.booking.allocated_ratio
    price = prices.of(idle.place.seat.card.gpu.model) if prices else None
    return None if share is None or price is None else share * price


def _cost(idle: _Idle, prices: Prices | None) -> float | None:
    price = _price(idle, prices)
    return None if price is None or idle.seconds is None else price * idle.seconds / SECONDS_PER_HOUR


def _if_all(values: list[float | None], choose: Callable[[list[float]], float]) -> float | None:
    known = [one for one in values if one is not None]
    return choose(known) if known and len(known) == len(values) else None


def _rank(row: IdleRow) -> tuple[float, float, str, str]:
    """What costs most comes first; without prices, what is held for longest."""
    held = (row.held_gpus or 0.0) * (row.idle_seconds or 0.0)
    return -(row.cost or 0.0), -held, row.namespace, row.pod
