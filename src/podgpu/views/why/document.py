"""The same chain for a program: what `podgpu why -o json` prints."""

from typing import Any

from podgpu.model import Card, Snapshot
from podgpu.views.json import plain
from podgpu.views.why.chain import Case, Chain

Object = dict[str, Any]


def evidence(snapshot: Snapshot, name: str) -> Object | None:
    """Return what the node's snapshot knows of `NAMESPACE/POD`, or of a title outside Kubernetes; None if nothing."""
    namespace, _, pod = name.rpartition("/")
    case = Case(snapshot, namespace, pod)
    case = case if namespace and case else Case(snapshot, "", "", name)
    if not case:
        return None
    return {
        "node": snapshot.node,
        "taken_at": snapshot.taken_at,
        **({"stored": True} if snapshot.stored else {}),
        "pods": [plain(one) | {"annotations": {}} for one in case.pods.values()],
        "cards": [_card(card, chains) for card, chains in case.cards],
        "unclaimed": [plain(one) for one in case.unclaimed],
    }


def _card(card: Card, chains: list[Chain]) -> Object:
    about = {"gpu": card.gpu, "fault": card.fault, "balance": card.balance}
    known = {key: plain(value) for key, value in about.items() if value is not None}
    return {**known, "containers": [_chain(one) for one in chains]}


def _chain(chain: Chain) -> Object:
    about = {"container": chain.container, "tenant": chain.tenant}
    known = {key: plain(value) for key, value in about.items() if value is not None}
    return {
        "mig": chain.mig,
        "has_ended": chain.has_ended,
        **known,
        "processes": [plain(one) for one in chain.processes],
    }
