"""What the page of a pod or a GPU says, as a document: its numbers, how each is known, and commands that lead on."""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from podgpu.insight import commands
from podgpu.insight.rows import SummaryRow, gpus_of, nodes_of, pods_of
from podgpu.insight.tenants import WORKING, NodeCard, Placement, placements, pod_name
from podgpu.model import Cluster, ClusterNode
from podgpu.numbers import celsius, count, duration, memory, part_of, watts
from podgpu.views import why_sentences as sentences
from podgpu.views.format import held_text, use_text
from podgpu.views.json import Object, plain
from podgpu.views.tenant_facts import NOT_KNOWN, TenantFact, tenant_facts

SCHEMA = 1


class FactsQuery(Struct, frozen=True):
    """The pod `namespace/name` or the owner outside Kubernetes, the UUID of a card or a MIG instance, or a node."""

    pod: str = ""
    gpu: str = ""
    node: str = ""

    def finds(self, place: Placement) -> bool:
        if self.pod:
            return pod_name(place.tenant.container) == self.pod
        return self.gpu in (place.on.card.gpu.uuid, place.tenant.mig)


def facts_document(cluster: Cluster, asked: FactsQuery) -> bytes:
    """Write what is known of a pod on each of its cards, of each tenant of a card, or of a node in all."""
    return facts_of_nodes(cluster, cluster.nodes, asked)


def facts_of_nodes(cluster: Cluster, nodes: Iterable[ClusterNode], asked: FactsQuery) -> bytes:
    """The same of a cluster with these nodes, of which only one is looked at at a time."""
    if asked.node:
        own = [node for node in nodes if node.name == asked.node]
        lines = [_fact(fact) for item in nodes_of(own) for fact in _row_facts(item.row, "no problem found")]
        return _encoded(cluster, lines, [command for node in own for command in commands.of_node(node)], [])
    cards = [on for node in nodes for on in _cards(node, asked)]
    places = [place for place in placements(cards) if asked.finds(place)]
    lines = [_fact(fact) for fact in _summary(cards, places, asked)]
    return _encoded(cluster, lines, _commands(cards, places, asked), [_place(place) for place in places])


def _encoded(
    cluster: Cluster, summary: list[Object], found: list[commands.ShellCommand], places: list[Object]
) -> bytes:
    head = {"schema": SCHEMA, "taken_at": cluster.taken_at, "summary": summary}
    return msgspec.json.encode({**head, "commands": [plain(command) for command in found], "places": places})


def _cards(node: ClusterNode, asked: FactsQuery) -> Iterator[NodeCard]:
    """Most cards are not meant: nothing is made of them."""
    for number, card in enumerate(node.snapshot.cards if node.snapshot else ()):
        if asked.pod:
            is_meant = any(pod_name(tenant.container) == asked.pod for tenant in card.tenants)
        else:
            is_meant = asked.gpu in (card.gpu.uuid, *(instance.mig.uuid for instance in card.instances))
        if is_meant and node.snapshot is not None:
            yield NodeCard(node.snapshot, card, node.state == "fresh", node, number)


def _commands(cards: list[NodeCard], places: list[Placement], asked: FactsQuery) -> list[commands.ShellCommand]:
    if asked.pod:
        return commands.of_pod(places)
    return [command for on in cards[:1] if on.node for command in commands.of_node(on.node)]


def _place(place: Placement) -> Object:
    on, ref = place.on, place.tenant.container
    stored = on.is_stored
    url = commands.word(commands.agent_url(on.snapshot.node))
    note = sentences.STORED.format(name=commands.word(pod_name(ref)), url=url) if stored else ""
    return {
        "node": plain(on.node_name),
        "uuid": plain(on.card.gpu.uuid),
        "index": on.card.gpu.index,
        "mig": plain(place.tenant.mig),
        "container": plain(ref),
        "facts": [_fact(fact) for fact in tenant_facts(place)],
        **({"note": plain(note)} if note else {}),
    }


def _fact(fact: TenantFact) -> Object:
    return {name: value for name, value in plain(fact).items() if value != ""}


def _summary(cards: list[NodeCard], places: list[Placement], asked: FactsQuery) -> Iterator[TenantFact]:
    """The sums that lists show, in words, so that two of a kind can be compared."""
    if asked.pod:
        items = pods_of(places)
        owners = dict.fromkeys(place.tenant.workload for place in places)
        made_for = [f"{owner.kind} {owner.name}" for owner in owners if owner]
        yield TenantFact("Workload", ", ".join(made_for) or NOT_KNOWN)
    else:
        items = gpus_of(cards)
        yield TenantFact("UUID", asked.gpu)
    well = _well(places) if asked.pod else "no problem found"
    for item in items:
        yield from _row_facts(item.row, well)
    if cards and not asked.pod:
        names = sorted({pod_name(place.tenant.container) for place in places})
        nobody = NOT_KNOWN if cards[0].card.fault else "nobody"
        yield TenantFact("Who is on it", ", ".join(names) or nobody)
        yield TenantFact("Driver", cards[0].snapshot.driver_version or NOT_KNOWN)


def _well(places: Iterable[Placement]) -> str:
    """What to say of a pod of which nothing else is worth knowing."""
    return WORKING if any(place.state == WORKING for place in places) else "holds nothing"


def _row_facts(row: SummaryRow, well: str) -> Iterator[TenantFact]:
    yield TenantFact("Node", row.node or NOT_KNOWN)
    yield TenantFact("GPU", ", ".join(row.gpus) or NOT_KNOWN)
    yield TenantFact("Model", row.model or NOT_KNOWN)
    idle = f"not used for {duration(row.idle_seconds)}" if row.idle_seconds is not None else ""
    yield TenantFact("State", ", ".join(filter(None, (row.state, row.detail, idle))) or well)
    yield TenantFact("Given", f"{held_text(row.held_gpus, row.unknown_shares)} of {count(row.cards, 'GPU')}")
    yield TenantFact("Busy", use_text(row.use) if row.use_ratio is not None else NOT_KNOWN)
    if row.certainty:
        yield TenantFact("Certainty", row.certainty)
    yield TenantFact("Memory", _memory(row.memory_used_bytes, row.memory_total_bytes))
    yield TenantFact("Power", NOT_KNOWN if row.power_watts is None else watts(row.power_watts))
    if row.temperature_celsius is not None:
        yield TenantFact("Temperature", celsius(row.temperature_celsius))


def _memory(used: int | None, total: int | None) -> str:
    if used is None:
        return NOT_KNOWN
    return memory(used) if total is None else part_of("memory", used, total)
