"""The cluster as rows: by pod, by workload, by namespace, by GPU or by node."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from podgpu.model import Cluster, ClusterNode, PendingPod
from podgpu.model.quantity import total_of_known
from podgpu.numbers import count
from podgpu.views.cluster.places import Place, Seat, places, seats
from podgpu.views.cluster.rows.row import Entry, Row
from podgpu.views.cluster.rows.sums import DIGITS, Sum
from podgpu.views.cluster.selection import EVERYTHING, Selection
from podgpu.views.outsider import is_outsider
from podgpu.views.tenant import idle_seconds, is_unseen
from podgpu.views.text import line

PENDING, IDLE, QUIET, UNSEEN = "pending", "idle", "quiet", "unseen"
Key = tuple[str, ...]
QUIET_SECONDS = 600.0  # a pause shorter than this is nothing unusual


def pods(cluster: Cluster, chosen: Selection = EVERYTHING) -> list[Entry]:
    """List pods, those outside Kubernetes, and the pods that wait for a GPU."""
    found = [_pod(key, own) for key, own in _grouped(cluster, chosen, _pod_key).items()]
    return found + [_pending(one) for one in cluster.pending if chosen.takes_pending(one)]


def workloads(cluster: Cluster, chosen: Selection = EVERYTHING) -> list[Entry]:
    return [_workload(key, own) for key, own in _grouped(cluster, chosen, _workload_key).items()]


def namespaces(cluster: Cluster, chosen: Selection = EVERYTHING) -> list[Entry]:
    return [_namespace(key, own) for key, own in _grouped(cluster, chosen, _namespace_key).items()]


def gpus(cluster: Cluster, chosen: Selection = EVERYTHING) -> list[Entry]:
    return [_gpu(seat) for seat in seats(cluster) if chosen.takes_seat(seat)]


def nodes(cluster: Cluster, chosen: Selection = EVERYTHING) -> list[Entry]:
    by_node: dict[str, list[Seat]] = {}
    for seat in seats(cluster):
        by_node.setdefault(seat.node.name, []).append(seat)
    return [
        _node(one, by_node.get(one.name, []))
        for one in cluster.nodes
        if chosen.is_everything or any(map(chosen.takes_seat, by_node.get(one.name, [])))
    ]


def pods_of(own: Iterable[Place]) -> list[Entry]:
    """List the pods that have these places."""
    return [_pod(key, some) for key, some in _gathered(own, _pod_key).items()]


def gpus_of(own: Iterable[Seat]) -> list[Entry]:
    return [_gpu(seat) for seat in own]


View = Callable[[Cluster, Selection], list[Entry]]
VIEWS: Mapping[str, View] = {
    "pods": pods,
    "workloads": workloads,
    "namespaces": namespaces,
    "gpus": gpus,
    "nodes": nodes,
}


def idles(row: Row) -> bool:
    """Whether somebody holds a GPU there and does not use it."""
    return bool(row.idle_pods) or row.state == QUIET


def _grouped(cluster: Cluster, chosen: Selection, key: Callable[[Place], Key]) -> dict[Key, list[Place]]:
    return _gathered((place for place in places(seats(cluster)) if chosen.takes(place)), key)


def _gathered(own: Iterable[Place], key: Callable[[Place], Key]) -> dict[Key, list[Place]]:
    groups: dict[Key, list[Place]] = {}
    for place in own:
        groups.setdefault(key(place), []).append(place)
    return groups


def _pod_key(place: Place) -> Key:
    """A pod is on one node. Should two nodes claim the same one, they are two."""
    ref, node = place.tenant.container, place.seat.node.name
    return ("", ref.container, "", node) if is_outsider(ref) else (ref.namespace, ref.pod, ref.pod_uid, node)


def _workload_key(place: Place) -> Key:
    ref, made_for = place.tenant.container, place.tenant.workload
    if is_outsider(ref):
        return ("", "", ref.container)
    return (ref.namespace, *((made_for.kind, made_for.name) if made_for else ("Pod", ref.pod)))


def _namespace_key(place: Place) -> Key:
    return (place.tenant.container.namespace,)


def _pod(key: Key, own: Sequence[Place]) -> Entry:
    namespace, name, *_ = key
    row = Sum(own).row(namespace=line(namespace), name=line(name), **_state(own))
    return Entry(row, "/".join(key), (namespace, name), own)


def _workload(key: Key, own: Sequence[Place]) -> Entry:
    namespace, kind, name = key
    row = Sum(own).row(namespace=line(namespace), kind=line(kind), name=line(name), **_idlers(own))
    return Entry(row, "/".join(key), (namespace, name, kind), own)


def _namespace(key: Key, own: Sequence[Place]) -> Entry:
    row = Sum(own).row(name=line(key[0]) or "outside Kubernetes", **_idlers(own))
    return Entry(row, key[0], (not key[0], key[0]), own)


def _gpu(seat: Seat) -> Entry:
    gpu, fault = seat.card.gpu, seat.card.fault
    node = line(seat.snapshot.node) or line(seat.node.name)
    total = Sum([Place(seat, one, None) for one in seat.card.tenants])
    row = total.row(
        name=f"{node} {gpu.index}",
        node=node,
        gpus=(str(gpu.index),),
        model=line(gpu.model).removeprefix("NVIDIA "),
        **_of_cards([seat]),
        **({"state": line(fault.reason), "detail": line(fault.detail)} if fault else _idlers(total.places)),
    )
    return Entry(row, seat.key, (node, gpu.index), total.places, (seat,), seat.node)


def _node(node: ClusterNode, own: list[Seat]) -> Entry:
    total = Sum([Place(seat, one, None) for seat in own for one in seat.card.tenants])
    down = [seat for seat in own if seat.card.fault]
    state = (
        {}
        if node.state == "fresh"
        else {"state": line(node.reason) or node.state, "detail": line(node.detail)}
    )
    if not state and down:
        state = {"state": f"{count(len(down), 'GPU')} down"}
    models = {line(seat.card.gpu.model).removeprefix("NVIDIA ") for seat in own}
    model = line(node.model).removeprefix("NVIDIA ") or (models.pop() if len(models) == 1 else "")
    row = total.row(
        name=line(node.name),
        node=line(node.name),
        model=model,
        gpus=(),
        **_of_cards(own),
        **(state or _idlers(total.places)),
    )
    return Entry(row, node.name, (node.name,), total.places, own, node)


def _of_cards(own: Sequence[Seat]) -> dict[str, object]:
    """What the cards themselves report: it counts also what is booked to nobody."""
    uses = [one.use for one in own if one.use.ratio is not None and not one.card.fault]
    busy = [one.ratio for one in uses if one.ratio is not None]
    heat = [one.seen.temperature_celsius for one in own if one.seen.temperature_celsius is not None]
    return {
        "cards": len(own),
        "busy_gpus": _total(busy),
        "least_busy_gpus": None,
        "most_busy_gpus": None,
        "use_ratio": round(sum(busy) / len(busy), DIGITS) if busy else None,
        "memory_used_bytes": _whole(one.seen.memory_used_bytes for one in own),
        "memory_total_bytes": _whole(one.seen.memory_total_bytes for one in own),
        "power_watts": _total(one.seen.power_watts for one in own),
        "temperature_celsius": max(heat) if heat else None,
    }


def _whole(values: Iterable[float | None]) -> int | None:
    total = _total(values)
    return None if total is None else int(total)


def _total(values: Iterable[float | None]) -> float | None:
    found = total_of_known(values)
    return None if found is None else round(found, DIGITS)


def _state(own: Sequence[Place]) -> dict[str, object]:
    """A pod is idle if it is so everywhere; what keeps its numbers from being known comes first."""
    for place in own:
        if fault := place.seat.card.fault:
            return {"state": line(fault.reason), "detail": f"GPU {place.seat.card.gpu.index}"}
    for place in own:
        if place.seat.node.state in ("stale", "failed"):
            return {"state": place.seat.node.state, "detail": line(place.seat.node.detail)}
    since = [idle_seconds(one.tenant, one.seat.snapshot.taken_at) for one in own]
    known = [one for one in since if one is not None]
    if all(place.tenant.idle for place in own):
        return {"state": IDLE, "idle_pods": 1, "idle_seconds": min(known) if known else None}
    if len(known) == len(own) and min(known) >= QUIET_SECONDS:
        return {"state": QUIET, "idle_seconds": min(known)}
    if all(is_unseen(place.tenant, place.seat.card) for place in own):
        return {"state": UNSEEN}
    return {}


def _idlers(own: Sequence[Place]) -> dict[str, object]:
    by_pod: dict[Key, bool] = {}
    for place in own:
        key = _pod_key(place)
        by_pod[key] = bool(place.tenant.idle) and by_pod.get(key, True)
    count = sum(by_pod.values())
    return {"idle_pods": count, "state": f"{count} idle" if count else ""}


def _pending(pod: PendingPod) -> Entry:
    asks = ", ".join(f"{line(amount)} {line(name)}" for name, amount in pod.asks.items())
    claims = ", ".join(map(line, pod.claims))
    row = Row(
        namespace=line(pod.namespace),
        name=line(pod.name),
        pods=1,
        state=PENDING,
        detail="; ".join(filter(None, (asks, claims, line(pod.reason)))),
    )
    return Entry(row, f"{pod.namespace}/{pod.name}/{pod.uid}", (pod.namespace, pod.name))
