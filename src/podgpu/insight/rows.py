"""The cluster as rows: by pod, by workload, by namespace, by label, by GPU or by node."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from podgpu.insight import certainty
from podgpu.insight.holder_problems import IDLE_TITLE
from podgpu.insight.selection import EVERYTHING, PodSelection
from podgpu.insight.sums import DIGITS, of_cards, of_placements, seen_gpus
from podgpu.insight.tenants import (
    IDLE,
    UNKNOWN,
    WAITING,
    NodeCard,
    Placement,
    cards_of,
    cards_of_node,
    is_holder,
    is_outsider,
    placements,
    reading,
)
from podgpu.model import EXACT, Cluster, ClusterNode, PendingPod, Sums, Use
from podgpu.model.kube import grouped, only
from podgpu.numbers import count

PENDING = "pending"
DARK = "dark"  # its node is: what is known is what was last heard
Key = tuple[str, ...]


class SummaryRow(Struct, frozen=True, kw_only=True):
    """One line. Quantities are of everything that it stands for, in base units; absent where nothing is known."""

    name: str  # of the pod, the workload, the namespace, the label's value, the GPU or the node
    namespace: str = ""  # empty outside Kubernetes, and for GPUs and nodes
    kind: str = ""  # of the workload; of a label's value, the label
    node: str = ""  # where it is; empty if on several
    gpus: tuple[
        str, ...
    ] = ()  # the driver's numbers of its cards, `?` if not known; with the profile of a MIG instance
    model: str = ""  # of its cards; empty if not known or mixed
    cards: int = 0  # how many cards it is on
    pods: int = 0  # how many pods it stands for
    held_gpus: float | None = None  # given to it, in whole cards, as far as that is known
    unknown_shares: int = 0  # what it holds besides, and whose size is not known
    busy_gpus: float | None = None  # used by it, in whole cards
    least_busy_gpus: float | None = None  # what that is for certain; absent where there is no doubt
    most_busy_gpus: float | None = None  # what that can be; absent where there is no doubt
    likely_least_busy_gpus: float | None = None  # what that likely is at least; absent unless it is estimated
    likely_most_busy_gpus: float | None = None  # what that likely is at most; absent unless it is estimated
    certainty: str = ""  # of the busy time: `exact`, `bounded` or `estimated`; empty if it is not known
    use_ratio: float | None = None  # 0 to 1, mean over its cards of which it is known
    memory_used_bytes: int | None = None  # held by its processes, or in use on the card
    memory_total_bytes: int | None = None  # what it may have, or what its cards have
    power_watts: float | None = None  # its part of the cards' power
    temperature_celsius: float | None = None  # of the hottest card
    unused_gpus: float | None = None  # held and idle, in whole cards; absent if that is known of none of it
    idle_pods: int | None = None  # pods that hold something idle; absent if that is known of none
    idle_seconds: float | None = None  # of what is idle for the shortest time; absent if nothing is
    state: str = ""  # what is worth knowing about it; empty if nothing is
    detail: str = ""  # the state in words
    severity: str = ""  # of what is wrong with its card, one of SEVERITIES; empty if nothing is
    dark_seconds: float | None = None  # since its node was last heard; absent unless that is dark
    known_cards: int = 0  # on how many of its cards its use is known

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def use(self) -> Use:
        """Mean over its cards of which it is known, with its ranges."""
        return Use(
            self.use_ratio,
            self._mean(self.least_busy_gpus),
            self._mean(self.most_busy_gpus),
            self.power_watts,
            self._mean(self.likely_least_busy_gpus),
            self._mean(self.likely_most_busy_gpus),
            self.certainty,
        )

    def _mean(self, gpus: float | None) -> float | None:
        return None if gpus is None or not self.known_cards else gpus / self.known_cards


class SummaryItem(Struct, frozen=True):
    """A row, and what it stands for."""

    row: SummaryRow
    key: str
    order: tuple[object, ...]  # by name, numbers in it as numbers
    places: Sequence[Placement] = ()
    cards: Sequence[NodeCard] = ()
    node: ClusterNode | None = None


def pods(cluster: Cluster, chosen: PodSelection = EVERYTHING) -> list[SummaryItem]:
    """List pods, those outside Kubernetes, and the pods that wait for a GPU."""
    found = _with_age(pods_of(_chosen(cluster, chosen)), cluster)
    return found + [_pending(pod) for pod in cluster.pending if chosen.takes_pending(pod)]


def pods_of(all_places: Iterable[Placement]) -> list[SummaryItem]:
    return [_pod(key, places) for key, places in grouped(all_places, lambda place: place.pod_key).items()]


def workloads(cluster: Cluster, chosen: PodSelection = EVERYTHING) -> list[SummaryItem]:
    return [_workload(key, places) for key, places in grouped(_chosen(cluster, chosen), workload_key).items()]


def namespaces(cluster: Cluster, chosen: PodSelection = EVERYTHING) -> list[SummaryItem]:
    return [_namespace(key, places) for key, places in grouped(_chosen(cluster, chosen), _namespace_of).items()]


def gpus(cluster: Cluster, chosen: PodSelection = EVERYTHING) -> list[SummaryItem]:
    return _with_age(gpus_of(on for on in cards_of(cluster) if chosen.takes_card(on)), cluster)


def gpus_of(cards: Iterable[NodeCard]) -> list[SummaryItem]:
    return [_gpu(on) for on in cards]


def nodes(cluster: Cluster, chosen: PodSelection = EVERYTHING) -> list[SummaryItem]:
    found = []
    for node in cluster.nodes:
        cards = cards_of_node(node)
        if chosen.takes_node(node.name) or any(map(chosen.takes_card, cards)):
            found.append(_node(node, cards))
    return _with_age(found, cluster)


def nodes_of(nodes: Iterable[ClusterNode]) -> list[SummaryItem]:
    return [_node(node, cards_of_node(node)) for node in nodes]


def _with_age(items: list[SummaryItem], cluster: Cluster) -> list[SummaryItem]:
    """Say of rows on dark nodes for how long these are."""
    return [_aged(item, cluster.taken_at) if item.row.state == DARK else item for item in items]


def _aged(item: SummaryItem, now: float) -> SummaryItem:
    nodes = [item.node] if item.node else [place.on.node for place in item.places]
    heard = [node.heard.at for node in nodes if node is not None and node.is_dark and node.heard]
    return replace(item, row=replace(item.row, dark_seconds=max(0.0, now - min(heard)))) if heard else item


def labels(cluster: Cluster, chosen: PodSelection = EVERYTHING) -> list[SummaryItem]:
    """List what the pods of each label have: a row for each value, and one for those without the label."""
    all_places = list(_chosen(cluster, chosen))
    names = sorted({name for place in all_places if place.pod is not None for name in place.pod.labels})
    return [
        _label(name, value, places)
        for name in names
        for value, places in grouped(all_places, partial(_value, name)).items()
    ]


View = Callable[[Cluster, PodSelection], list[SummaryItem]]
VIEWS: Mapping[str, View] = {
    "pods": pods,
    "workloads": workloads,
    "namespaces": namespaces,
    "labels": labels,
    "gpus": gpus,
    "nodes": nodes,
}


def workload_key(place: Placement) -> Key:
    """Namespace, kind and name. A pod of which nothing more is known is its own workload."""
    ref, made_for = place.tenant.container, place.tenant.workload
    if is_outsider(ref):
        return ("", "", ref.container)
    return (ref.namespace, *((made_for.kind, made_for.name) if made_for else ("Pod", ref.pod)))


def short_model(model: str) -> str:
    return model.removeprefix("NVIDIA ")


def _chosen(cluster: Cluster, chosen: PodSelection) -> Iterable[Placement]:
    return (place for place in placements(cards_of(cluster)) if chosen.takes(place))


def _namespace_of(place: Placement) -> str:
    return place.tenant.container.namespace


def _pod(key: Key, places: Sequence[Placement]) -> SummaryItem:
    node, namespace, name, uid = key
    state, detail = _pod_state(places)
    row = replace(_group_row(places, name=name, namespace=namespace), state=state, detail=detail)
    return SummaryItem(row, "/".join((namespace, name, uid, node)), (namespace, name), places)


def _workload(key: Key, places: Sequence[Placement]) -> SummaryItem:
    namespace, kind, name = key
    row = _group_row(places, name=name, namespace=namespace, kind=kind)
    return SummaryItem(row, "/".join(key), (namespace, name, kind), places)


def _namespace(name: str, places: Sequence[Placement]) -> SummaryItem:
    row = _group_row(places, name=name or "outside Kubernetes")
    return SummaryItem(row, name, (not name, name), places)


def _value(label: str, place: Placement) -> str:
    return place.pod.labels.get(label, "") if place.pod else ""


def _label(name: str, value: str, places: Sequence[Placement]) -> SummaryItem:
    row = _group_row(places, name=value or f"without {name}", kind=name)
    return SummaryItem(row, f"{name}={value}", (name, not value, value), places)


def _group_row(places: Sequence[Placement], **names: str) -> SummaryRow:
    sums = of_placements(places)
    nodes = {place.on.node_name for place in places}
    known_cards = len({place.on.key for place in places if _use(place).ratio is not None})
    busy = _busy(places)
    return _row(
        sums,
        places,
        known_cards=known_cards,
        node=only(nodes),
        gpus=card_numbers(places) if len(nodes) == 1 else (),
        model=_model(place.on for place in places),
        least_busy_gpus=_rounded(busy.least),
        most_busy_gpus=_rounded(busy.most),
        likely_least_busy_gpus=_rounded(busy.likely_least),
        likely_most_busy_gpus=_rounded(busy.likely_most),
        certainty=busy.certainty,
        state=_idle_words(sums),
        **names,
    )


def _gpu(on: NodeCard) -> SummaryItem:
    gpu, fault = on.card.gpu, on.card.fault
    places = list(placements([on]))
    number = gpu.number
    row = replace(_card_row([on], places, name=f"{on.node_name} {number}"), gpus=(number,))
    if fault:
        row = replace(row, state=fault.reason, detail=fault.detail)
    elif wrong := [title for title in on.card.problems if title != IDLE_TITLE]:  # a row counts its idle pods itself
        row = replace(row, state=", ".join([*wrong, *filter(None, (row.state,))]), severity=on.card.severity)
    if on.node is not None and on.is_dark:
        row = replace(row, state=DARK, detail=on.node.detail)
    return SummaryItem(row, "/".join(map(str, on.key)), (on.node_name, gpu.index), places, (on,), on.node)


def _node(node: ClusterNode, cards: Sequence[NodeCard]) -> SummaryItem:
    places = list(placements(cards))
    row = _card_row(cards, places, name=node.name)
    lost = sum(on.card.fault is not None for on in cards)
    if node.is_dark:
        row = replace(row, state=DARK, detail=node.detail, unused_gpus=None, idle_pods=None)
    elif node.state != "fresh":
        row = replace(row, state=node.reason or node.state, detail=node.detail)
    elif lost:
        row = replace(row, state=f"{count(lost, 'GPU')} down")
    if node.model:
        row = replace(row, model=short_model(node.model))
    return SummaryItem(row, node.name, (node.name,), places, cards, node)


def _card_row(cards: Sequence[NodeCard], places: Sequence[Placement], *, name: str) -> SummaryRow:
    sums = of_cards(cards)
    heat = [reading(on.card.readings, "temperature_celsius") for on in cards if on.is_fresh]
    return _row(
        sums,
        places,
        known_cards=seen_gpus(sums),
        name=name,
        node=cards[0].node_name if cards else name,
        model=_model(cards),
        temperature_celsius=max((value for value in heat if value is not None), default=None),
        certainty="" if sums.busy_gpus is None else EXACT,  # a card measures its own busy time
        state=_idle_words(sums),
    )


def _row(sums: Sums, places: Sequence[Placement], *, known_cards: int, **more: Any) -> SummaryRow:
    """Fill in what all rows have."""
    is_held = any(is_holder(place.tenant) for place in places)
    return SummaryRow(
        cards=sums.gpus or 0,
        pods=sums.pods or 0,
        held_gpus=sums.allocated_gpus if is_held and (sums.allocated_gpus or not sums.unknown_shares) else None,
        unknown_shares=sums.unknown_shares,
        busy_gpus=sums.busy_gpus,
        use_ratio=None if sums.busy_gpus is None or not known_cards else round(sums.busy_gpus / known_cards, DIGITS),
        memory_used_bytes=sums.memory_used_bytes,
        memory_total_bytes=sums.memory_total_bytes,
        power_watts=sums.power_watts,
        unused_gpus=sums.unused_gpus,
        idle_pods=sums.unused_pods,
        idle_seconds=_shortest_idle(places),
        known_cards=known_cards,
        **more,
    )


def _model(cards: Iterable[NodeCard]) -> str:
    """The model of the cards; empty if mixed."""
    return only(short_model(on.card.gpu.model) for on in cards)


def _pod_state(places: Sequence[Placement]) -> tuple[str, str]:
    """What keeps its numbers from being known comes first. Idle if anything that it holds is."""
    for place in places:
        if place.on.node and place.on.is_dark:
            return DARK, place.on.node.detail
    for place in places:
        if fault := place.on.card.fault:
            return fault.reason, f"GPU {place.on.card.gpu.number}"
    states = {place.state for place in places}
    return next((state for state in (IDLE, WAITING, UNKNOWN) if state in states), ""), ""


def _idle_words(sums: Sums) -> str:
    return f"{sums.unused_pods} idle" if sums.unused_pods else ""


def _shortest_idle(places: Iterable[Placement]) -> float | None:
    found = [place.idle_seconds for place in places if place.on.is_fresh]
    return min((seconds for seconds in found if seconds is not None), default=None)


def card_numbers(places: Sequence[Placement]) -> tuple[str, ...]:
    """The cards' numbers in order, `3/1g.18gb` for a MIG instance."""
    found = {(place.on.card.gpu.index, place.on.card.gpu.number, _profile(place)) for place in places}
    return tuple(f"{number}/{profile}" if profile else number for _, number, profile in sorted(found))


def _profile(place: Placement) -> str:
    """The profile of the MIG instance that it is on; empty without one."""
    mig = place.tenant.mig
    found = (instance.mig.profile for instance in place.on.card.instances if instance.mig.uuid == mig)
    return next(found, "") if mig else ""


def _use(place: Placement) -> Use:
    is_known = place.on.is_fresh and place.on.card.fault is None
    return place.tenant.use or Use() if is_known else Use()


def _busy(places: Sequence[Placement]) -> Use:
    """The busy time of all of them, in whole cards: on each card what they had together, then of all cards."""
    known = [place for place in places if _use(place).ratio is not None]
    by_card = grouped(known, lambda place: place.on.key)
    return certainty.added(
        certainty.of_group(group[0].on.card, [place.tenant for place in group]) for group in by_card.values()
    )


def _rounded(gpus: float | None) -> float | None:
    return None if gpus is None else round(gpus, DIGITS)


def _pending(pod: PendingPod) -> SummaryItem:
    asks = ", ".join(f"{amount} {name}" for name, amount in pod.asks.items())
    claims = ", ".join(pod.claims)
    row = SummaryRow(
        namespace=pod.namespace,
        name=pod.name,
        pods=1,
        state=PENDING,
        detail="; ".join(filter(None, (asks, claims, pod.reason))),
    )
    return SummaryItem(row, f"{pod.namespace}/{pod.name}/{pod.uid}", (pod.namespace, pod.name))
