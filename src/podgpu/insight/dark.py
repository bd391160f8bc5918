"""Which nodes are dark: their GPUs should be read, and are not. Since when, and what they last said.

Concluded once, here. What is said of a dark node is what was last heard of it, and never a number of now.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from podgpu.catalog.agent_parts import PARTS
from podgpu.insight.problem_kind import CRITICAL, MOST_NAMED, WARNING, ProblemKind, fault_words, few, pod_names
from podgpu.insight.tenants import InsightSettings
from podgpu.model import Cluster, ClusterNode, Dark, Fault, Insight, LastWords, Problem, Snapshot
from podgpu.numbers import count, duration, integer

LIVE, STARTING, PARTLY, DARK, UNREAD = "live", "starting", "partly", "dark", "unread"
KIND = "nodes_dark"
MOST_PODS = 16  # holders whose names a dark node keeps
MOST_ADVICE = 2  # reasons, the most frequent, whose advice is given


def blindness(snapshot: Snapshot) -> tuple[str, Fault] | None:
    """Return the part that keeps an agent from seeing any GPU of its node, and why; None if nothing does."""
    if snapshot.cards or snapshot.guests:
        return None
    for part in snapshot.parts:
        known = PARTS.get(part.name)
        if known is not None and known.reads_gpus and not part.up:
            return part.name, part.fault or Fault(reason="failed")
    return None


def last_words(snapshot: Snapshot, at: float) -> LastWords:
    """Sum up what a node said. `at` is when, by the reader's own clock: the node's may be wrong."""
    pods = pod_names(tenant.container for card in snapshot.cards for tenant in card.tenants)
    return LastWords(
        at=at,
        gpus=len(snapshot.cards),
        pods=tuple(pods[:MOST_PODS]),
        more_pods=max(0, len(pods) - MOST_PODS),
        problems=snapshot.insight.problems if snapshot.insight else (),
    )


def of_snapshot(snapshot: Snapshot) -> Dark:
    """Judge an agent's own node."""
    blind = blindness(snapshot)
    if blind is None:
        return Dark(state=LIVE, text="live", of_nodes=1)
    part, fault = blind
    if fault.reason == "starting":
        return Dark(state=STARTING, text=f"starting: {part} has not been read yet", of_nodes=1)
    text = f"no GPU is read: {part} says {fault_words(fault)}"
    return Dark(state=DARK, text=text, severity=CRITICAL, nodes=1, of_nodes=1, unknown_nodes=1)


def of_cluster(cluster: Cluster, settings: InsightSettings) -> Dark:
    dark = [node for node in cluster.nodes if node.is_dark]
    wanted = sum(node.state != "allocation" for node in cluster.nodes)
    starting = sum(node.state == "failed" and not node.is_dark for node in cluster.nodes)
    heard = [node.heard.at for node in dark if node.heard is not None]
    critical = settings.dark_critical.of(wanted)
    since = min(heard, default=None)
    cards = [_cards(node) for node in dark]
    return Dark(
        state=_state(len(cluster.nodes), wanted, len(dark), starting),
        text=_words(cluster, wanted, len(dark), starting, since),
        severity=(CRITICAL if len(dark) >= critical else WARNING) if dark else "",
        nodes=len(dark),
        of_nodes=wanted,
        gpus=sum(number or 0 for number in cards),
        unknown_nodes=cards.count(None),
        since=since,
        critical_nodes=critical,
    )


def problems(cluster: Cluster, found: Dark) -> Iterator[Problem]:
    """Say it in one sentence, however many they are."""
    dark = [node for node in cluster.nodes if node.is_dark]
    if not dark:
        return
    if len(dark) == 1 and found.of_nodes > 1:
        text = _of_one(dark[0], cluster.taken_at)
    else:
        text = _of_many(dark, found, cluster.taken_at)
    yield Problem(
        kind=KIND,
        severity=found.severity,
        title="Dark",
        text=text,
        next_step=_advice(dark),
        node=dark[0].name if len(dark) == 1 else "",
        since=found.since,
    )


def remembered(node: ClusterNode, insight: Insight | None, now: float) -> list[Problem]:
    """List the problems of a dark node, as it last reported them, each with its age."""
    if insight is None or node.heard is None:
        return []
    at, age = node.heard.at, duration(max(0.0, now - node.heard.at))
    return [
        Problem(
            kind=problem.kind,
            severity=problem.severity,
            title=problem.title,
            text=f"{problem.text} Last seen {age} ago: its node is dark.",
            next_step=problem.next_step,
            node=node.name,
            gpu=problem.gpu,
            uuid=problem.uuid,
            pod=problem.pod,
            since=problem.since,
            more=problem.more,
            last_seen=at,
        )
        for problem in insight.problems
    ]


def _cards(node: ClusterNode) -> int | None:
    """How many it has, by whoever knows; None if nobody does."""
    if node.snapshot is not None:
        return len(node.snapshot.cards)
    return node.heard.gpus if node.heard else None


def _state(nodes: int, wanted: int, dark: int, starting: int) -> str:
    if nodes and not wanted:
        return UNREAD
    if dark:
        return DARK if dark == wanted else PARTLY
    return STARTING if starting else LIVE


def _words(cluster: Cluster, wanted: int, dark: int, starting: int, since: float | None) -> str:
    nodes = len(cluster.nodes)
    if nodes and not wanted:
        return f"{count(nodes, 'node')}, none read: only allocations are known"
    without = [f"{integer(nodes - wanted)} without an agent"] if nodes > wanted else []
    waited = [f"{integer(starting)} not read yet"] if starting else []
    if not dark:
        return ", ".join((count(wanted, "node"), *(waited or ["live"]), *without))
    age = "" if since is None else f" for {'up to ' if dark > 1 else ''}{duration(max(0.0, cluster.taken_at - since))}"
    if dark == wanted:
        return ", ".join((f"{'all ' if dark > 1 else ''}{count(dark, 'node')} dark{age}", *without))
    live = f"{integer(wanted - dark - starting)} of {count(wanted, 'node')} live"
    return ", ".join((live, f"{integer(dark)} dark{age}", *waited, *without))


def _of_one(node: ClusterNode, now: float) -> str:
    reason = node.reason.replace("_", " ") or "the reason is not known"
    heard = node.heard
    if heard is None:
        return f"{node.name} is dark: {reason}. It has never given numbers."
    said = f"It was last heard {duration(max(0.0, now - heard.at))} ago"
    if heard.gpus is None:
        return f"{node.name} is dark: {reason}. {said}."
    pods = len(heard.pods) + heard.more_pods
    held = f", held by {count(pods, 'pod')}" if pods else ""
    return f"{node.name} is dark: {reason}. {said}, with {count(heard.gpus, 'GPU')}{held}."


def _of_many(dark: Sequence[ClusterNode], found: Dark, now: float) -> str:
    cards = f", with {count(found.gpus, 'GPU')}" if found.gpus else ""
    age = "" if found.since is None else f", the first for {duration(max(0.0, now - found.since))}"
    reasons = Counter(node.reason.replace("_", " ") or "unknown" for node in dark)
    why = ", ".join(f"{integer(number)} {reason}" for reason, number in reasons.most_common(MOST_NAMED))
    names = few([node.name for node in dark])
    be = "is" if len(dark) == 1 else "are"
    return f"{integer(len(dark))} of {count(found.of_nodes, 'node')} {be} dark{cards}{age}: {names}. Why: {why}."


def _advice(dark: Sequence[ClusterNode]) -> str:
    """What to do, by the most frequent reasons."""
    reasons = Counter(node.reason for node in dark).most_common(MOST_ADVICE)
    firsts = [next(node.detail for node in dark if node.reason == reason) for reason, _ in reasons]
    return " ".join(dict.fromkeys(filter(None, firsts)))


KINDS = (ProblemKind(KIND, 2, "Nodes are dark: their GPUs should be read, and are not."),)
