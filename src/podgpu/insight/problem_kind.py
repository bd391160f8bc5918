"""A kind of problem: its place in the order, what it means, and how it is found."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from podgpu.insight.tenants import InsightSettings, NodeCard, pod_name
from podgpu.model import Cluster, ContainerRef, Fault, Problem, Snapshot
from podgpu.numbers import duration

CRITICAL, WARNING, INFO = "critical", "warning", "info"
MOST_NAMED = 3


class ProblemKind(Struct, frozen=True):
    """Kinds of a lower rank come first. A kind examines cards, a node's snapshot, or the cluster."""

    name: str
    rank: int
    means: str
    of_card: Callable[[NodeCard], Iterator[Problem]] | None = None
    of_snapshot: Callable[[Snapshot, InsightSettings], Iterator[Problem]] | None = None
    of_cluster: Callable[[Cluster], Iterator[Problem]] | None = None


def on_card(on: NodeCard, kind: str, severity: str, title: str, text: str, **more: Any) -> Problem:
    gpu = on.card.gpu
    where: dict[str, Any] = {"node": on.node_name, "gpu": gpu.index, "uuid": gpu.uuid}
    return Problem(kind=kind, severity=severity, title=title, text=text, **where, **more)


def about_card(on: NodeCard, kind: str, severity: str, title: str, what: str, **more: Any) -> Problem:
    """`what` is the rest of a sentence that begins with the card."""
    gpu = on.card.gpu
    name = f"GPU {gpu.index}" if gpu.index >= 0 else f"GPU {gpu.uuid}"
    return on_card(on, kind, severity, title, f"{name} {what}", **more)


def fault_words(fault: Fault) -> str:
    """The reason, the call it is stuck in, for how long, and what the source said."""
    words = [fault.reason]
    if fault.call:
        words.append(f"in {fault.call}")
    if fault.seconds > 0:
        words.append(f"for {duration(fault.seconds)}")
    text = " ".join(words)
    return f"{text}: {fault.detail.rstrip('.')}" if fault.detail else text


def pod_names(containers: Iterable[ContainerRef]) -> list[str]:
    """Name the pods of containers, each once."""
    return list(dict.fromkeys(map(pod_name, containers)))


def few(names: Sequence[str]) -> str:
    """Write `a/b, c/d, e/f and 3 more`."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
