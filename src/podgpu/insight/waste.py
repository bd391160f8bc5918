"""Who wastes: what each team or namespace holds and does not use, in a sentence, and a message to the owner."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from shlex import quote

from msgspec.structs import replace

from podgpu.insight.tenants import (
    EVIDENCE,
    IDLE,
    NOTHING,
    Placement,
    cards_of_node,
    gpu_numbers,
    held_share,
    is_outsider,
    placements,
    pod_name,
)
from podgpu.model import ClusterNode, WasteRow
from podgpu.model.kube import grouped, total
from podgpu.numbers import count, gpus, integer, moment, money, since

TEAM = "team"  # the label of pods that names their team
MOST_NAMED = 10  # pods in a message
MOST_LISTED = 8  # teams and namespaces in a cluster's document
DIGITS = 12  # enough to cut the noise of binary fractions
ASKED = "Please scale down what is not needed."
NAMESPACE, OUTSIDE = "namespace", "outside"
Owner = tuple[str, str]


def waste_of(idle: Iterable[Placement], now: float, currency: str) -> tuple[WasteRow, ...]:
    """Add up what is idle, with its sentences, most first."""
    owners = grouped(idle, _owner)
    rows = [
        _told(replace(_row(owner, places), cost=total(place.idle_cost for place in places)), places, now, currency)
        for owner, places in owners.items()
    ]
    return tuple(sorted(rows, key=_rank))


def of_node(places: Iterable[Placement]) -> tuple[WasteRow, ...]:
    """Add up what is idle on a node, in numbers."""
    return tuple(sorted((_row(owner, own) for owner, own in grouped(_idle(places), _owner).items()), key=_rank))


def told(rows: Iterable[WasteRow], places: Iterable[Placement], now: float, currency: str) -> tuple[WasteRow, ...]:
    """Say it in sentences. `places` are all those on the node."""
    owners = grouped(_idle(places), _owner)
    return tuple([_told(row, owners.get((row.by, row.name), []), now, currency) for row in rows])


def of_cluster(
    nodes: Sequence[tuple[ClusterNode, tuple[WasteRow, ...]]], now: float, currency: str
) -> tuple[tuple[WasteRow, ...], int]:
    """Add up the rows of nodes. Return those who waste most, with their sentences, and how many others there are."""
    parts = grouped((row for _, rows in nodes for row in rows), _owner_of_row)
    rows = sorted((_added(owner, own) for owner, own in parts.items()), key=_rank)
    listed = [_told(row, _first_places(nodes, row), now, currency) for row in rows[:MOST_LISTED]]
    return tuple(listed), max(0, len(rows) - MOST_LISTED)


def titled(row: WasteRow) -> str:
    return f"team {row.name}" if row.by == TEAM else row.name


def _first_places(nodes: Sequence[tuple[ClusterNode, tuple[WasteRow, ...]]], row: WasteRow) -> list[Placement]:
    """The places of as many of its pods as a message names. Only the nodes that these are on are looked at."""
    owner = _owner_of_row(row)
    own = (node for node, rows in nodes if any(_owner_of_row(part) == owner for part in rows))
    pods = (
        places
        for node in own
        for places in grouped(
            (place for place in _idle(placements(cards_of_node(node))) if _owner(place) == owner),
            lambda place: place.pod_key,
        ).values()
    )
    return [place for places in islice(pods, MOST_NAMED) for place in places]


def _idle(places: Iterable[Placement]) -> Iterator[Placement]:
    """Only of what was read just now: an old snapshot says nothing about now."""
    return (place for place in places if place.on.is_fresh and place.state == IDLE)


def _owner(place: Placement) -> Owner:
    ref = place.tenant.container
    if is_outsider(ref):
        return OUTSIDE, ref.container
    team = place.pod.labels.get(TEAM) if place.pod else None
    return (TEAM, team) if team else (NAMESPACE, ref.namespace)


def _owner_of_row(row: WasteRow) -> Owner:
    return row.by, row.name


def _rank(row: WasteRow) -> tuple[float, float, str, str]:
    return -(row.cost_per_hour or 0.0), -row.gpus, row.by, row.name


def _row(owner: Owner, places: Sequence[Placement]) -> WasteRow:
    shares = [held_share(place.tenant, place.on.card) for place in places]
    starts = [place.tenant.holding.since for place in places if place.tenant.holding]
    known = [start for start in starts if start is not None]
    return WasteRow(
        by=owner[0],
        name=owner[1],
        gpus=float(sum((share or NOTHING for share in shares), NOTHING)),
        pods=len({place.pod_key for place in places}),
        unknown_shares=shares.count(None),
        since=min(known, default=None),
        last_since=max(known, default=None),
        cost_per_hour=total(place.cost_per_hour for place in places),
    )


def _added(owner: Owner, parts: Sequence[WasteRow]) -> WasteRow:
    cost = total(part.cost_per_hour for part in parts)
    return WasteRow(
        by=owner[0],
        name=owner[1],
        gpus=round(sum(part.gpus for part in parts), DIGITS),
        pods=sum(part.pods for part in parts),
        unknown_shares=sum(part.unknown_shares for part in parts),
        since=min((part.since for part in parts if part.since is not None), default=None),
        last_since=max((part.last_since for part in parts if part.last_since is not None), default=None),
        cost_per_hour=None if cost is None else round(cost, DIGITS),
    )


def held_words(row: WasteRow) -> str:
    """How much that is, as far as it is known."""
    if not row.gpus:
        return "a share of a GPU"
    return f"{'at least ' if row.unknown_shares else ''}{gpus(row.gpus)}"


def _told(row: WasteRow, places: Sequence[Placement], now: float, currency: str) -> WasteRow:
    """`places` are those of the pods that the message names."""
    cost = row.cost_per_hour
    price = f", {money(cost, currency)} an hour" if cost is not None and currency else ""
    first = "the first " if row.last_since != row.since else ""
    began = f", {first}since {since(row.since, now)}" if row.since else ""
    title = f"Team {row.name}" if row.by == TEAM else row.name
    text = f"{title} holds {held_words(row)} without using {'it' if row.gpus <= 1 else 'them'}{price}{began}."
    # What an agent says of itself need not fit together.
    how = [f"How this is known: podgpu why {quote(pod_name(place.tenant.container))}" for place in places[:1]]
    return replace(row, text=text, message="\n".join((text, "", *_pods(row, places), "", ASKED, *how)))


def _pods(row: WasteRow, places: Sequence[Placement]) -> list[str]:
    pods = list(grouped(places, lambda place: place.pod_key).values())[:MOST_NAMED]
    more = row.pods - len(pods)
    return [*(f"- {_where(own)}: {_why(own[0])}" for own in pods), *([f"- and {integer(more)} more"] if more else [])]


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
