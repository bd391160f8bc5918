"""What follows from a snapshot or a cluster: which tenants use what they hold, sums, and what is wrong.

Concluded once, here, by pure functions. The documents carry it, and every surface only shows it.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from podgpu.insight import commands, dark, problems, sums, waste
from podgpu.insight.answers import answers
from podgpu.insight.tenants import (
    InsightSettings,
    NodeCard,
    Placement,
    cards_of_node,
    cards_of_snapshot,
    judged,
    placements,
)
from podgpu.insight.without_claim import with_reasons
from podgpu.model import (
    SEVERITIES,
    Card,
    Cluster,
    ClusterNode,
    Group,
    GuestCard,
    Insight,
    LastWords,
    NodeShare,
    Prices,
    Problem,
    Snapshot,
    Sums,
    WasteRow,
    of_one,
)
from podgpu.model.kube import grouped

__all__ = ["InsightSettings"]  # to be imported from here, besides what is defined here


def conclude(snapshot: Snapshot, settings: InsightSettings, *, has_books: bool = True) -> Snapshot:
    """Return the snapshot with what follows from it. `has_books`: whether everything that was booked is in it."""
    settings = settings.at(snapshot.taken_at)
    cards = [with_reasons(judged(card, snapshot, settings), snapshot) for card in snapshot.cards]
    used = replace(snapshot, cards=tuple(cards))
    found = problems.all_of_snapshot(used, settings, has_books=has_books)
    seen = dark.of_snapshot(snapshot)
    insight = replace(_insight(cards_of_snapshot(used), snapshot.guests, found, settings), dark=seen)
    insight = replace(insight, problems=_with_commands(insight.problems, of_one(used).nodes))
    if seen.state != dark.LIVE:
        insight = replace(insight, sums=Sums())
    return with_answers(replace(used, cards=_with_titles(used.cards, found), insight=insight))


def with_answers(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with the sentences that its slim form leaves out, and that an older podgpu did not write."""
    insight = snapshot.insight
    if insight is None or insight.answers is not None:
        return snapshot
    places = list(placements(cards_of_snapshot(snapshot)))
    rows = waste.of_node(places) if insight.waste is None else insight.waste
    insight = replace(insight, waste=waste.told(rows, places, snapshot.taken_at, insight.currency))
    return replace(snapshot, insight=replace(insight, answers=answers(insight)))


def concluded(snapshot: Snapshot, settings: InsightSettings, *, has_books: bool = False) -> Snapshot:
    """Conclude from what others sent. What they concluded with the same settings stands as it is: the same object.

    A document for many nodes leaves out those that ended, and so does a store: their books say nothing.
    """
    if _is_concluded(snapshot, settings):
        return snapshot
    return conclude(snapshot, settings, has_books=has_books and not snapshot.stored)


def conclude_node(node: ClusterNode, settings: InsightSettings) -> ClusterNode:
    """Return the node with what follows from it: the same object if it is fresh and concluded already.

    An agent does not know that its node is cordoned. Of a dark node, the problems are those that it last reported.
    """
    if bool(node.dark) != node.is_dark:
        node = replace(node, dark=node.is_dark or None)
    if node.snapshot is None:
        if node.heard is None or not node.heard.problems:
            return node
        # The node is known to exist, and nothing else.
        found = Insight(idle_after_seconds=settings.idle_after, sums=Sums(), problems=node.heard.problems)
        return replace(node, insight=found)
    snapshot, is_fresh = concluded(node.snapshot, settings), node.state == "fresh"
    if is_fresh and not node.cordoned:
        return node if snapshot is node.snapshot else replace(node, snapshot=snapshot, insight=None)
    node = replace(node, snapshot=snapshot)
    said: LastWords | Insight | None = node.heard if node.is_dark else snapshot.insight if is_fresh else None
    settings = settings.at(snapshot.taken_at)
    insight = _insight(cards_of_node(node), snapshot.guests, said.problems if said else (), settings)
    return replace(node, insight=insight)


def conclude_cluster(cluster: Cluster, settings: InsightSettings) -> Cluster:
    """Return the cluster with what follows from its nodes, which are concluded already."""
    known = [insight for node in cluster.nodes if (insight := node.concluded) is not None]
    unread = dark.of_cluster(cluster, settings)
    whole = sums.added(insight.sums for insight in known)
    by_name: dict[str, list[Sums]] = {}
    for insight in known:
        for group in insight.namespaces:
            by_name.setdefault(group.name, []).append(group.sums)
    groups = [Group(name=name, sums=sums.added(parts)) for name, parts in by_name.items()]
    currency = settings.prices.currency if settings.prices else ""
    wasting = [(node, _waste(node)) for node in cluster.nodes]
    rows, more = waste.of_cluster(wasting, cluster.taken_at, currency)
    insight = Insight(
        idle_after_seconds=settings.idle_after,
        sums=whole if whole.gpus or not unread.nodes else Sums(),
        namespaces=_most_first(groups),
        problems=_with_commands(problems.of_cluster(cluster, unread), cluster.nodes),
        dark=unread,
        waste=rows,
        more_waste=more,
        currency=currency,
        prices={model: price for insight in known for model, price in insight.prices.items()},
    )
    return replace(cluster, insight=replace(insight, answers=answers(insight)))


def _waste(node: ClusterNode) -> tuple[WasteRow, ...]:
    """What is wasted on the node. Where an older podgpu concluded, what it held idle is added up here."""
    known = node.concluded.waste if node.concluded is not None else ()
    return waste.of_node(placements(cards_of_node(node))) if known is None else known


def _with_commands(found: Iterable[Problem], nodes: Iterable[ClusterNode]) -> tuple[Problem, ...]:
    """Say what to run first: where several clusters are read, in which of them."""
    by_name = {node.name: node for node in nodes}
    return tuple(
        [
            replace(problem, command=commands.of_problem(problem, by_name[problem.node]))
            if problem.node in by_name
            else problem
            for problem in found
        ]
    )


def reconclude(cluster: Cluster, settings: InsightSettings) -> Cluster:
    """Conclude everything with other settings than those that the documents came with."""
    nodes = tuple([conclude_node(node, settings) for node in cluster.nodes])
    return conclude_cluster(replace(cluster, nodes=nodes), settings)


def ensured(cluster: Cluster, settings: InsightSettings) -> Cluster:
    """Keep what others concluded, with whatever settings, and conclude the rest: older agents conclude nothing."""
    theirs = cluster.insight or next((node.concluded for node in cluster.nodes if node.concluded), None)
    kept = settings_of(theirs) if theirs else settings
    nodes = tuple([node if node.concluded else conclude_node(node, kept) for node in cluster.nodes])
    return conclude_cluster(replace(cluster, nodes=nodes), kept)


def settings_of(insight: Insight) -> InsightSettings:
    """Return the settings behind an insight that was made elsewhere."""
    prices = Prices(currency=insight.currency, gpu_hour=insight.prices) if insight.currency else None
    theirs = InsightSettings(idle_after=insight.idle_after_seconds, prices=prices)
    return replace(theirs, dark_critical=NodeShare(number=insight.dark.critical_nodes)) if insight.dark else theirs


def _is_concluded(snapshot: Snapshot, settings: InsightSettings) -> bool:
    """Whether its insight is what these settings would give."""
    insight, settings = snapshot.insight, settings.at(snapshot.taken_at)
    if insight is None or insight.waste is None or insight.idle_after_seconds != settings.idle_after:
        return False
    return insight.prices == _prices(snapshot.cards, settings.prices) and (
        settings.prices is None or insight.currency == settings.prices.currency
    )


def _with_titles(cards: tuple[Card, ...], found: Iterable[Problem]) -> tuple[Card, ...]:
    by_card = grouped(
        (problem for problem in found if problem.gpu is not None), lambda problem: (problem.uuid, problem.gpu)
    )
    if not by_card:
        return cards
    return tuple([_with_problems(card, by_card.get((card.gpu.uuid, card.gpu.index), ())) for card in cards])


def _with_problems(card: Card, found: Sequence[Problem]) -> Card:
    titles = dict.fromkeys(problem.title for problem in found)
    gravest = min((problem.severity for problem in found), key=SEVERITIES.index, default="")
    return replace(card, problems=tuple(titles), severity=gravest)


def _insight(
    cards: Sequence[NodeCard],
    guests: tuple[GuestCard, ...] | None,
    found: Iterable[Problem],
    settings: InsightSettings,
) -> Insight:
    places = list(placements(cards))
    by_name = grouped(places, _namespace)
    groups = [Group(name=name, sums=sums.of_placements(own)) for name, own in by_name.items()]
    return Insight(
        idle_after_seconds=settings.idle_after,
        sums=replace(sums.of_cards(cards), guest_gpus=len(guests) if guests else None),
        namespaces=_most_first(groups),
        problems=tuple(problems.folded(found)),
        waste=waste.of_node(places),
        currency=settings.prices.currency if settings.prices else "",
        prices=_prices((on.card for on in cards), settings.prices),
    )


def _namespace(place: Placement) -> str:
    return place.tenant.container.namespace


def _most_first(groups: Iterable[Group]) -> tuple[Group, ...]:
    return tuple(sorted(groups, key=lambda group: (-(group.sums.allocated_gpus or 0.0), group.name)))


def _prices(cards: Iterable[Card], prices: Prices | None) -> dict[str, float]:
    if prices is None:
        return {}
    known = {card.gpu.model: prices.of(card.gpu.model) for card in cards}
    return {model: price for model, price in sorted(known.items()) if price is not None}
