"""The three questions of a first look, each answered in a line: what is wrong, who wastes, who uses what."""

from collections import Counter
from collections.abc import Iterable

from podgpu.insight import dark
from podgpu.insight.sums import seen_gpus
from podgpu.insight.waste import titled
from podgpu.model import SEVERITIES, Answers, Insight, Problem
from podgpu.numbers import count, gpus, integer, money, part_of

_NOUNS = {"warning": "warning", "info": "note"}


def answers(found: Insight) -> Answers:
    return Answers(wrong=_wrong(found), waste=_waste(found), use=_use(found))


def _wrong(found: Insight) -> str:
    """How many problems there are of each severity. That nodes are dark is one, and says of how many nodes."""
    seen = found.dark
    unread = [] if seen is None or seen.state == dark.LIVE else [seen.text]
    if not found.problems:
        return "; ".join(("nothing wrong is known", *unread))
    number = _numbers(found.problems)
    parts = [_counted(severity, number[severity]) for severity in SEVERITIES if number[severity]]
    nodes = [f"{count(seen.nodes, 'node')} dark"] if seen is not None and seen.nodes and seen.of_nodes > 1 else []
    return ", ".join((*parts, *nodes))


def _numbers(problems: Iterable[Problem]) -> Counter[str]:
    number: Counter[str] = Counter()
    for problem in problems:
        number[problem.severity] += 1 + problem.more
    return number


def _counted(severity: str, number: int) -> str:
    return f"{integer(number)} critical" if severity == "critical" else count(number, _NOUNS[severity])


def _waste(found: Insight) -> str:
    """What is held and not used, what that costs, and who does it most."""
    sums, rows = found.sums, found.waste or ()
    unknown = [f"not known of {count(sums.unknown_pods, 'pod')}"] if sums.unknown_pods else []
    if sums.unused_gpus is None:
        return ", ".join(unknown) or "not known"
    if not rows:
        return ", ".join(("no GPU is held without use", *unknown, *_unseen(found)))
    cost = sums.unused_cost_per_hour
    price = [f"{money(cost, found.currency)} an hour"] if cost is not None and found.currency else []
    least = "at least " if any(row.unknown_shares for row in rows) else ""
    most = f"most by {titled(rows[0])}" if len(rows) > 1 else f"by {titled(rows[0])}"
    return ", ".join((f"{least}{gpus(sums.unused_gpus)}", *price, most, *unknown))


def _use(found: Insight) -> str:
    """How many are busy, of those that are measured, and who uses most of them."""
    sums = found.sums
    unseen = _unseen(found)
    if sums.busy_gpus is None:
        return ", ".join(("busy time not known", *unseen))
    users = [group for group in found.namespaces if group.sums.busy_gpus]
    most = max(users, key=lambda group: group.sums.busy_gpus or 0.0, default=None)
    name = [] if most is None else [f"most by {most.name or 'what is outside Kubernetes'}"]
    return ", ".join((f"{part_of('gpus', sums.busy_gpus, seen_gpus(sums))} busy", *name, *unseen))


def _unseen(found: Insight) -> list[str]:
    """Of what the answer says nothing. Of some dark nodes not even the number of cards is known."""
    if found.sums.dark_gpus:
        return [f"{count(found.sums.dark_gpus, 'GPU')} dark"]
    return [f"{count(found.dark.nodes, 'node')} dark"] if found.dark is not None and found.dark.nodes else []
