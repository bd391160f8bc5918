"""What is drawn of a GPU or of a pod over the last hour: its numbers with their times, and the XIDs in between."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from podgpu.insight.moments import charted, pod_id, pod_use
from podgpu.model import Card, XidMark

MOST_PODS = 10  # as many as the page has colours; the others are added up

Object = dict[str, Any]
Series = dict[str, list[tuple[float, float]]]
Moments = Iterable[tuple[float, Iterable[Card]]]


def gpu_hour(moments: Moments, uuid: str, marks: Collection[XidMark]) -> Object | None:
    """Return the main numbers of a card or a MIG instance, and of a card the busy time of its pods.

    None if it is on none of the cards.
    """
    series: Series = {}
    pods: Series = {}
    namespaces: dict[str, str] = {}
    cards: set[str] = set()
    for at, read in moments:
        card = _card(read, uuid)
        if card is None:
            continue
        cards.add(card.gpu.uuid)
        _put(series, at, charted((card,), uuid))
        if card.gpu.uuid == uuid:
            _put(pods, at, _busy(card))
            namespaces |= {pod_id(tenant.container): tenant.container.namespace for tenant in card.tenants}
    if not cards:
        return None
    return {
        "series": series,
        **_largest(pods, namespaces),
        "xids": written(mark for mark in marks if mark.uuid in cards),
    }


def _card(cards: Iterable[Card], uuid: str) -> Card | None:
    """Find the card of that UUID, or the one with the MIG instance."""
    for card in cards:
        if card.gpu.uuid == uuid or any(instance.mig.uuid == uuid for instance in card.instances):
            return card
    return None


def _busy(card: Card) -> Mapping[str, float | None]:
    """How busy each pod kept the card, where that is known."""
    found: dict[str, float | None] = {}
    for tenant in card.tenants:
        if tenant.use is not None and tenant.use.ratio is not None:
            name = pod_id(tenant.container)
            found[name] = (found.get(name) or 0.0) + tenant.use.ratio
    return found


def _largest(pods: Series, namespaces: Mapping[str, str]) -> Object:
    """Name the busiest pods, in alphabetical order, and add up the others."""
    total = {pod: sum(value for _, value in points) for pod, points in pods.items()}
    shown = sorted(sorted(total, key=lambda pod: (-total[pod], pod))[:MOST_PODS])
    others: defaultdict[float, float] = defaultdict(float)
    for pod in total.keys() - set(shown):
        for at, value in pods[pod]:
            others[at] += value
    named = {"pods": [{"pod": pod, "namespace": namespaces[pod], "busy_ratio": pods[pod]} for pod in shown]}
    return {**named, "other_busy_ratio": sorted(others.items())} if others else named


def pod_hour(moments: Moments, pod: str, marks: Collection[XidMark]) -> Object | None:
    """Return how busy a pod kept its GPUs, its memory and its power, each summed over its GPUs as far as it is known.

    An XID is one of the pod's if the pod was on that card at the moment before it or at the one after it. None if the
    pod was on none of the cards.
    """
    series: Series = {"busy": [], "memory": [], "watts": []}
    times: list[float] = []
    on: dict[str, set[float]] = {}
    for at, read in moments:
        times.append(at)
        cards = [card for card in read if any(pod_id(tenant.container) == pod for tenant in card.tenants)]
        for card in cards:
            on.setdefault(card.gpu.uuid, set()).add(at)
        if cards:
            _put(series, at, pod_use(cards, pod))
    if not on:
        return None
    return {**series, "xids": written(mark for mark in marks if _was_there(mark, on.get(mark.uuid, ()), times))}


def _was_there(mark: XidMark, seen: Collection[float], times: Sequence[float]) -> bool:
    after = bisect_left(times, mark.at)
    return any(at in seen for at in times[max(0, after - 1) : after + 1])


def _put(series: Series, at: float, values: Mapping[str, float | None]) -> None:
    for name, value in values.items():
        if value is not None:
            series.setdefault(name, []).append((at, value))


def written(marks: Iterable[XidMark]) -> list[Object]:
    """Write each XID once, in order."""
    return [asdict(mark) for mark in sorted(set(marks), key=lambda mark: (mark.at, mark.node, mark.gpu, mark.code))]
