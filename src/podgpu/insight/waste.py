"""Waste with a name: which team or namespace holds GPUs without using them, and what to write to it."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from podgpu.insight.sums import grouped
from podgpu.insight.tenants import EVIDENCE, NOTHING, Placement, held_share, is_outsider, pod_name
from podgpu.model.quantity import total
from podgpu.numbers import count, gpus, integer, moment, money, since

TEAM = "team"  # the label of pods that names their team
MOST_NAMED = 10  # pods in a message
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
    rows = [_row(owner, own, now, currency) for owner, own in grouped(idle, _owner).items()]
    return tuple(sorted(rows, key=lambda row: (-(row.cost_per_hour or 0.0), -row.gpus, row.by, row.name)))


def _owner(place: Placement) -> tuple[str, str]:
    ref = place.tenant.container
    if is_outsider(ref):
        return OUTSIDE, ref.container
    team = place.pod.labels.get(TEAM) if place.pod else None
    return (TEAM, team) if team else (NAMESPACE, ref.namespace)


def _row(owner: tuple[str, str], own: Sequence[Placement], now: float, currency: str) -> WasteRow:
    by, name = owner
    held = float(sum((held_share(place.tenant, place.on.card) or NOTHING for place in own), NOTHING))
    starts = [place.tenant.holding.since for place in own if place.tenant.holding]
    first = min((start for start in starts if start is not None), default=None)
    pods = grouped(own, lambda place: place.pod_key)
    cost = total(place.cost_per_hour for place in own)
    what = gpus(held) if held else "a share of a GPU"
    price = f", {money(cost, currency)} an hour" if cost is not None and currency else ""
    began = f", {'the first ' if len(set(starts)) > 1 else ''}since {since(first, now)}" if first else ""
    text = f"{_title(by, name)} holds {what} without using {'it' if held <= 1 else 'them'}{price}{began}."
    return WasteRow(
        by=by,
        name=name,
        gpus=held,
        pods=len(pods),
        since=first,
        cost_per_hour=cost,
        cost=total(place.idle_cost for place in own),
        text=text,
        message="\n".join((text, "", *_pods(list(pods.values())), "", *_request(own[0]))),
    )


def _title(by: str, name: str) -> str:
    return f"Team {name}" if by == TEAM else name


def _pods(pods: Sequence[Sequence[Placement]]) -> list[str]:
    lines = [f"- {_where(own)}: {_why(own[0])}" for own in pods[:MOST_NAMED]]
    more = len(pods) - MOST_NAMED
    return [*lines, *([f"- and {integer(more)} more"] if more > 0 else [])]


def _where(own: Sequence[Placement]) -> str:
    numbers = sorted({place.on.card.gpu.index for place in own})
    cards = f"GPU {numbers[0]}" if len(numbers) == 1 else f"{count(len(numbers), 'GPU')}"
    return f"{pod_name(own[0].tenant.container)} on {own[0].on.node_name}, {cards}"


def _why(place: Placement) -> str:
    held = place.tenant.holding
    if held is None:
        return "not used"
    began = f"not used since {moment(held.since)}, " if held.since is not None else ""
    return f"{began}{EVIDENCE.get(held.evidence, held.evidence)}"


def _request(first: Placement) -> list[str]:
    name = pod_name(first.tenant.container)
    return ["Please scale down what is not needed.", f"How this is known: podgpu why {name}"]
