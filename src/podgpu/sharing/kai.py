"""KAI Scheduler and Run:ai: fractions of a card, for pods that the kubelet gave nothing.

For each shared card a reservation pod holds the whole of it. Whoever has a part of it bears the label of its group. So
the card of a group is the one that the kubelet gave its reservation pod; where the kubelet's list is missing, what that
pod's own note says has to do. The fraction, or the MiB, is what the pod asked for, of each of its cards.

Tenants can write labels and notes on their own pods, but none into the namespace of the reservation pods: a group
without a reservation pod there leads nowhere. Reservation pods themselves have nothing of their cards.
"""

import re
from collections import defaultdict
from collections.abc import Iterator

from msgspec import Struct

from podgpu.model import Allocation, Claim, ContainerRef, Pod
from podgpu.sharing.inventory import Inventory

NAME = "kai"
GROUP = "runai-gpu-group"
ONE_OF_SEVERAL_GROUPS = f"{GROUP}/"
FRACTION, MEMORY = "gpu-fraction", "gpu-memory"
SIGNS: tuple[str, ...] = (GROUP, FRACTION)
NEEDS = "the pods' labels and annotations, also those of the reservation pods"
CARDS = "gpu-fraction-num-devices"
CONTAINER = "gpu-fraction-container-name"
RECEIVED = "received-resource-type"
RESERVATION_NAMESPACES = ("kai-resource-reservation", "runai-reservation")
RESERVATION_PODS = ("gpu-reservation-", "runai-reservation-gpu-")  # what their names begin with
RESERVED_CARD = "run.ai/reserve_for_gpu_index"  # in truth its UUID
MIB = 1 << 20

_FRACTION = re.compile(r"[0-9]{1,3}(\.[0-9]{1,9})?|\.[0-9]{1,9}")
_WHOLE = re.compile(r"[0-9]{1,8}")


class Request(Struct, frozen=True, kw_only=True):
    """What a pod asked for of each card, as a part of it or in bytes."""

    name: str
    share: float = 0.0
    size: int = 0


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    pod = inventory.pod(allocation)
    return pod is not None and _is_reservation(pod) and allocation.device_id in inventory.gpus


def claims(inventory: Inventory) -> Iterator[Claim]:
    cards = _cards(inventory)
    for pod in inventory.pods:
        request = _request(pod) if cards and _is_fraction(pod) else None
        groups = _groups(pod)
        if request and len(groups) == _number(pod, CARDS, otherwise=1):
            for group in sorted(groups & cards.keys()):
                yield _claim(pod, group, cards[group], request, inventory)


def withdraws(claim: Claim, inventory: Inventory) -> bool:
    """Whoever claims a card for a reservation pod is mistaken."""
    holder = claim.container
    if holder.namespace not in RESERVATION_NAMESPACES:
        return False
    known = [pod for pod in inventory.pods if (pod.namespace, pod.name) == (holder.namespace, holder.pod)]
    return holder.pod.startswith(RESERVATION_PODS) or any(map(_is_reservation, known))


def _is_reservation(pod: Pod) -> bool:
    return pod.namespace in RESERVATION_NAMESPACES and GROUP in pod.labels


def _is_fraction(pod: Pod) -> bool:
    received = pod.annotations.get(RECEIVED, "Fraction")
    return received == "Fraction" and not pod.finished and pod.namespace not in RESERVATION_NAMESPACES


def _cards(inventory: Inventory) -> dict[str, str]:
    """Return the card of each group. A group with several is none's."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for allocation in inventory.allocations:
        pod = inventory.pod(allocation)
        if pod and explains(allocation, inventory):
            found[pod.labels[GROUP]].add(allocation.device_id)
    if not inventory.allocations:
        for pod in inventory.pods:
            card = pod.annotations.get(RESERVED_CARD)
            if card in inventory.gpus and _is_reservation(pod) and not pod.finished:
                found[pod.labels[GROUP]].add(card)
    return {group: next(iter(cards)) for group, cards in found.items() if len(cards) == 1}


def _groups(pod: Pod) -> set[str]:
    """A pod with parts of several cards has a label for each, with the group in its name and as its value."""
    return {
        group for key, group in pod.labels.items() if key == GROUP or key.startswith(ONE_OF_SEVERAL_GROUPS)
    }


def _request(pod: Pod) -> Request | None:
    fraction = pod.annotations.get(FRACTION, "")
    share = min(1.0, float(fraction)) if _FRACTION.fullmatch(fraction) else 0.0
    if share:
        return Request(name=FRACTION, share=share)
    mib = _number(pod, MEMORY, otherwise=0)
    return Request(name=MEMORY, size=mib * MIB) if mib else None


def _number(pod: Pod, annotation: str, *, otherwise: int) -> int:
    text = pod.annotations.get(annotation, str(otherwise))
    return int(text) if _WHOLE.fullmatch(text) else 0


def _claim(pod: Pod, group: str, card: str, request: Request, inventory: Inventory) -> Claim:
    total = inventory.memory.get(card, 0)
    share = request.share or (min(1.0, request.size / total) if total else 0.0)
    return Claim(
        gpu=card,
        container=ContainerRef(pod.namespace, pod.name, _container(pod), pod.uid),
        share=share,
        memory_limit_bytes=request.size or int(request.share * total) or None,
        resource=request.name,
        device_id=group,
        system=NAME,
        source="annotation",
    )


def _container(pod: Pod) -> str:
    """Return the one that is named, else the first of the spec; none, where that cannot be told."""
    named = pod.annotations.get(CONTAINER)
    fitting = (
        one.name
        for one in pod.containers
        if (one.name == named if named else not (one.is_init or one.is_ephemeral))
    )
    return next(fitting, "")
