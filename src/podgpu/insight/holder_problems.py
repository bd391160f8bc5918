"""What is wrong with tenants: use without an allocation, devices that no sharing system knows, idle holders."""

from collections.abc import Iterator

from podgpu.insight.problem_kind import WARNING, ProblemKind, few, on_card
from podgpu.insight.tenants import (
    EVIDENCE,
    IDLE,
    NOTHING,
    InsightSettings,
    NodeCard,
    Placement,
    cards_of_snapshot,
    gpu_numbers,
    held_share,
    placements,
    pod_name,
)
from podgpu.insight.without_claim import NOT_GIVEN
from podgpu.model import Allocation, Problem, Snapshot
from podgpu.model.kube import grouped, total
from podgpu.numbers import duration, gpus, money

UNKNOWN_SHARE = "It is charged for nothing that it holds. `podgpu why POD` and `podgpu doctor` show what is missing."
UNKNOWN_CARD = (
    "It is charged for nothing of this until a process of it runs on the card. If somebody has removed its annotation, "
    "restart the pod."
)
LOOK = "Look for a privileged container, NVIDIA_VISIBLE_DEVICES=all, or a device mounted from the host."

IDLE_TITLE = "Idle"


def _not_given(on: NodeCard) -> Iterator[Problem]:
    """One for each pod on the card, with its containers."""
    users = [tenant.container for tenant in on.card.tenants if tenant.without_claim == NOT_GIVEN]
    for first, *others in grouped(users, lambda user: (user.namespace, user.pod, user.pod_uid)).values():
        name, containers = pod_name(first), [user.container for user in (first, *others) if user.container]
        what = "Container" if len(containers) == 1 else "Containers"
        who = f"{what} {few(containers)} of {name}" if containers else name
        verb = "use" if len(containers) > 1 else "uses"
        text = f"{who} {verb} GPU {on.card.gpu.number}, which is not allocated to the pod."
        yield on_card(on, "not_given", WARNING, "Not given", text, next_step=LOOK, pod=name)


def _unclaimed(snapshot: Snapshot, _: InsightSettings) -> Iterator[Problem]:
    for allocation in snapshot.unclaimed:
        yield Problem(
            kind="unclaimed",
            severity=WARNING,
            title="Unknown device",
            text=f"{allocation.namespace}/{allocation.pod}: {_not_claimed(allocation)}.",
            next_step="Nothing is booked by this ID. `podgpu doctor` shows what is missing.",
            node=snapshot.node,
            pod=f"{allocation.namespace}/{allocation.pod}",
        )


def _not_claimed(allocation: Allocation) -> str:
    device = f"the device {allocation.device_id} of {allocation.resource}"
    if allocation.disputed:
        return f"the kubelet lists {device} for another pod too"
    return f"no sharing system knows {device}"


def _unknown_card(snapshot: Snapshot, _: InsightSettings) -> Iterator[Problem]:
    """One for each container."""
    for holding in snapshot.unplaced or ():
        name = pod_name(holding.container)
        what = "a GPU or a part of one" if holding.devices == 1 else f"{holding.devices} GPUs or parts of them"
        text = f"{name} was given {what} by {holding.resource}, and nothing says which."
        yield Problem(
            kind="unknown_card",
            severity=WARNING,
            title="Unknown card",
            text=text,
            next_step=UNKNOWN_CARD,
            node=snapshot.node,
            pod=name,
        )


def _unknown_share(on: NodeCard) -> Iterator[Problem]:
    """Where no agent is, Kubernetes alone tells few shares: that there is none is the problem then."""
    if on.card.fault is not None or not on.snapshot.parts:
        return
    for tenant in on.card.tenants:
        if tenant.claims and held_share(tenant, on.card) is None:
            name = pod_name(tenant.container)
            what = "a MIG instance" if tenant.mig else "a share"
            text = f"{name} holds {what} of GPU {on.card.gpu.number} whose size is not known."
            yield on_card(on, "unknown_share", WARNING, "Unknown share", text, next_step=UNKNOWN_SHARE, pod=name)


def _idle(snapshot: Snapshot, settings: InsightSettings) -> Iterator[Problem]:
    """One for each pod that holds something idle, the most wasteful first."""
    idle = [place for place in placements(cards_of_snapshot(snapshot)) if place.state == IDLE]
    pods = grouped(idle, lambda place: place.pod_key)
    for places in sorted(pods.values(), key=_wasted, reverse=True):
        yield _idle_pod(places, snapshot, settings)


def _idle_pod(places: list[Placement], snapshot: Snapshot, settings: InsightSettings) -> Problem:
    name = pod_name(places[0].tenant.container)
    shares = [held_share(place.tenant, place.on.card) for place in places]
    known = total(float(share) if share is not None else None for share in shares)
    numbers = gpu_numbers(places)
    where = f"GPU {numbers[0]}" if len(numbers) == 1 else f"GPUs {', '.join(numbers)}"
    what = f"{gpus(known)} on {where}" if known is not None else f"a share of {where}"
    pronoun = "them" if known is not None and known > 1 else "it"
    since = max(place.tenant.holding.since or 0.0 for place in places if place.tenant.holding)
    evidence = places[0].tenant.holding.evidence if places[0].tenant.holding else ""
    cost = total(place.idle_cost for place in places)
    spent = f" ({money(cost, settings.prices.currency)})" if cost is not None and settings.prices else ""
    first = places[0].on.card.gpu
    return Problem(
        kind="idle",
        severity=WARNING,
        title=IDLE_TITLE,
        text=f"{name} holds {what} and has not used {pronoun} for {duration(snapshot.taken_at - since)}{spent}: "
        f"{EVIDENCE.get(evidence, evidence)}.",
        next_step="Ask its owner, or scale it down.",
        node=snapshot.node,
        gpu=first.index if len(numbers) == 1 else None,
        uuid=first.uuid if len(numbers) == 1 else "",
        pod=name,
        since=since,
    )


def _wasted(places: list[Placement]) -> float:
    return float(
        sum((held_share(place.tenant, place.on.card) or NOTHING) * int(place.idle_seconds or 0) for place in places)
    )


KINDS = (
    ProblemKind("not_given", 50, "A pod uses a card that is not allocated to it.", of_card=_not_given),
    ProblemKind("unclaimed", 51, "A device that the kubelet allocated is not understood.", of_snapshot=_unclaimed),
    ProblemKind(
        "unknown_card", 53, "A pod was given a part of some card, and nothing says which.", of_snapshot=_unknown_card
    ),
    ProblemKind(
        "unknown_share", 52, "A pod holds a share of a card, and its size is not known.", of_card=_unknown_share
    ),
    ProblemKind(
        "idle",
        70,
        "A pod holds a share of a card and has not used it for the time of --idle.after.",
        of_snapshot=_idle,
    ),
)
