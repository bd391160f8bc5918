"""How a node stands, by what was read of it and what Kubernetes knows. Pure: time is an argument."""

from msgspec import Struct
from msgspec.structs import replace

from podgpu.cluster.reader import REASONS, ReadFault
from podgpu.model import ClusterNode, Snapshot, Written

STALE_INTERVALS = 3
FORGET_SECONDS = 300.0  # what is older is not shown at all


class Look(Struct, frozen=True, kw_only=True):
    """What the readings of a node came to so far. `seconds` is how long ago the snapshot was new."""

    origin: str = ""
    snapshot: Snapshot | None = None
    written: Written | None = None
    seconds: float = 0.0
    fault: ReadFault | None = None


def stand(name: str, look: Look | None, known: ClusterNode | None, interval: float) -> ClusterNode:
    """`known` is what Kubernetes knows of the node, `interval` the time between two readings."""
    bare = known or ClusterNode(name=name, state="allocation")
    if look is None:
        return _with_reason(bare, "allocation", "no_agent")
    snapshot = look.snapshot
    if snapshot is None or look.seconds > FORGET_SECONDS:
        fault = look.fault or ReadFault("starting", "")
        return _with_reason(bare, "failed", fault.reason, fault.detail)
    read = replace(
        bare,
        name=name,
        origin=look.origin,
        snapshot=snapshot,
        written=look.written,
        model=_model(snapshot) or bare.model,
    )
    if is_fresh(look, interval):
        return replace(read, state="fresh", reason="", detail="")
    fault = look.fault or ReadFault("stopped", "")
    return _with_reason(read, "stale", fault.reason, fault.detail)


def is_unchanged(node: ClusterNode, look: Look | None, interval: float) -> bool:
    """Whether a fresh node is what `stand` would make of it again, while Kubernetes knows the same of it."""
    return (
        node.state == "fresh"
        and look is not None
        and look.snapshot is node.snapshot
        and is_fresh(look, interval)
    )


def is_fresh(look: Look, interval: float) -> bool:
    """Whether it was new not long ago, by the interval of whoever made it."""
    if look.snapshot is None:
        return False
    return look.seconds <= STALE_INTERVALS * max(interval, look.snapshot.interval_seconds)


def _with_reason(node: ClusterNode, state: str, reason: str, what: str = "") -> ClusterNode:
    words = " ".join(filter(None, (_sentence(what), REASONS[reason])))
    origin = "api" if state != "stale" and node.snapshot else node.origin
    return replace(node, state=state, origin=origin, reason=reason, detail=words)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def _model(snapshot: Snapshot) -> str:
    """Return the model of its cards, or nothing if there are several."""
    models = {card.gpu.model for card in snapshot.cards}
    return models.pop() if len(models) == 1 else ""
