"""KAI Scheduler and Run:ai: fractions of a card, for pods that the kubelet gave nothing.

A reservation pod holds each shared card as a whole. Pods with a part of it carry the label of its group. So the card
of a group is the one that the kubelet gave its reservation pod. Where the kubelet's list is missing, or its ids are
not UUIDs, the annotation that the reservation pod wrote on itself names the card. The fraction, or the MiB, is what
the pod asked for, of each of its cards. Reservation pods themselves have nothing of their cards.

Reservation pods have a namespace of their own, where tenants can write nothing: that alone is proof. Names, labels and
annotations are not, since tenants can write them. Where an administrator has renamed it, `--sharing.namespaces` names
it.

A pod's author can change the request after the scheduler has read it. It counts as it was when it was highest.

By default nothing enforces a fraction. Where HAMi's library does, its file in the container has the limit.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from math import ceil
from typing import TypeAlias

from msgspec import Struct

from podgpu.model import Allocation, Claim, ContainerRef, Device, Excused, Pod
from podgpu.model.fit import PORTION, WantedPart
from podgpu.sharing import kube_cards
from podgpu.sharing.inventory import MIB, Inventory
from podgpu.sharing.system import PartRequest, SharingSystem

NAME = "kai"
GROUP = "runai-gpu-group"
ONE_OF_SEVERAL_GROUPS = f"{GROUP}/"
FRACTION, MEMORY = "gpu-fraction", "gpu-memory"
CARDS = "gpu-fraction-num-devices"
CONTAINER = "gpu-fraction-container-name"
RECEIVED = "received-resource-type"
RESERVATION_NAMESPACES = ("kai-resource-reservation", "runai-reservation")
RESERVATION_PODS = ("gpu-reservation-", "runai-reservation-gpu-")  # what their names begin with
RESERVED_CARD = "run.ai/reserve_for_gpu_index"  # in truth its UUID
GPUS = "nvidia.com/"

_FRACTION = re.compile(r"(?:[0-9]{1,3}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:[eE][-+]?[0-9]{1,3})?")
_WHOLE = re.compile(r"[0-9]{1,8}")

PodName: TypeAlias = tuple[str, str]  # namespace, name


class FractionRequest(Struct, frozen=True, kw_only=True):
    """What a pod asked for of each card, as a part of it or in bytes."""

    name: str
    share: float = 0.0
    size: int = 0


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return (allocation.namespace, allocation.pod) in inventory.once(_reservations)


def claims(inventory: Inventory) -> Iterator[Claim]:
    known, reservations = _cards(inventory), inventory.once(_reservations)
    for pod in inventory.pods if known else ():
        is_tenant = _is_fraction(pod, inventory) and (pod.namespace, pod.name) not in reservations
        request, groups = _request(pod) if is_tenant else None, _groups(pod)
        if request and len(groups) == _number(pod, CARDS, otherwise=1):
            for group in sorted(groups & known.keys()):
                yield _claim(pod, group, known[group], request, inventory)


def withdraws(claim: Claim, inventory: Inventory) -> bool:
    """Withdraw the claims of reservation pods."""
    return _is_reservation(claim.container.namespace, claim.container.pod, inventory)


def excused(inventory: Inventory) -> Iterator[tuple[str, Excused]]:
    """Yield the reservation pods, each with the card that it has for others."""
    reserved = inventory.once(_reservations)
    for given in inventory.allocations:
        if given.resource.startswith(GPUS) and _is_reservation(given.namespace, given.pod, inventory):
            named = given.device_id if given.device_id in inventory.gpus else ""
            card = named or reserved.get((given.namespace, given.pod), "")
            proof = f"its namespace {given.namespace} is the sharing system's own"
            yield card, Excused(role="reservation", proof=proof, container=inventory.container(given))


def cards(inventory: Inventory) -> Iterator[Device]:
    """Yield the cards in annotations of reservation pods, where tenants can write nothing."""
    usual = [pod for pod in inventory.pods if _is_own(pod.namespace, inventory) and not pod.finished]
    return kube_cards.by_uuid(pod.annotations.get(RESERVED_CARD, "") for pod in usual)


def _is_own(namespace: str, inventory: Inventory) -> bool:
    return namespace in RESERVATION_NAMESPACES or namespace in inventory.namespaces


def _is_reservation(namespace: str, pod: str, inventory: Inventory) -> bool:
    """Whether a pod is one. Where labels are not known, its name distinguishes it from others in its namespace."""
    by_name = _is_own(namespace, inventory) and pod.startswith(RESERVATION_PODS)
    return by_name or (namespace, pod) in inventory.once(_reservations)


def _is_fraction(pod: Pod, inventory: Inventory) -> bool:
    received = pod.annotations.get(RECEIVED, "Fraction")
    return received == "Fraction" and not pod.finished and not _is_own(pod.namespace, inventory)


def _reservations(inventory: Inventory) -> dict[PodName, str]:
    """Return the card of each reservation pod; none, where it is not known yet."""
    given: defaultdict[PodName, list[Allocation]] = defaultdict(list)
    for allocation in inventory.allocations:
        if allocation.resource.startswith(GPUS):
            given[allocation.namespace, allocation.pod].append(allocation)
    is_listed = bool(inventory.allocations)
    return {
        (pod.namespace, pod.name): _card(pod, given[pod.namespace, pod.name], inventory, is_listed=is_listed)
        for pod in inventory.pods
        if GROUP in pod.labels and not pod.finished and _is_own(pod.namespace, inventory)
    }


def _card(pod: Pod, given: list[Allocation], inventory: Inventory, *, is_listed: bool) -> str:
    """Return what the kubelet gave, else what the pod's annotation says, if the kubelet gave it one or has no list."""
    if cards := {allocation.device_id for allocation in given if allocation.device_id in inventory.gpus}:
        return cards.pop() if len(cards) == 1 else ""
    annotated = pod.annotations.get(RESERVED_CARD, "")
    return annotated if annotated in inventory.gpus and len(given) == is_listed else ""


def _cards(inventory: Inventory) -> dict[str, str]:
    """Return the card of each group. A group with several cards has none."""
    reserved = inventory.once(_reservations)
    found: defaultdict[str, set[str]] = defaultdict(set)
    for pod in inventory.pods:
        if card := reserved.get((pod.namespace, pod.name)):
            found[pod.labels.get(GROUP, "")].add(card)
    return {group: next(iter(cards)) for group, cards in found.items() if group and len(cards) == 1}


def _groups(pod: Pod) -> set[str]:
    """A pod with parts of several cards has a label for each, with the group in its name and as its value."""
    return {group for key, group in pod.labels.items() if key == GROUP or key.startswith(ONE_OF_SEVERAL_GROUPS)}


def _request(pod: Pod) -> FractionRequest | None:
    fraction = pod.annotations.get(FRACTION, "")
    share = min(1.0, float(fraction)) if _FRACTION.fullmatch(fraction) else 0.0
    if share:
        return FractionRequest(name=FRACTION, share=share)
    mib = _number(pod, MEMORY, otherwise=0)
    return FractionRequest(name=MEMORY, size=mib * MIB) if mib else None


def _number(pod: Pod, annotation: str, *, otherwise: int) -> int:
    text = pod.annotations.get(annotation, str(otherwise))
    return int(text) if _WHOLE.fullmatch(text) else 0


def _claim(pod: Pod, group: str, card: str, request: FractionRequest, inventory: Inventory) -> Claim:
    total = inventory.memory.get(card, 0)
    container = _container(pod)
    return Claim(
        gpu=card,
        container=ContainerRef(pod.namespace, pod.name, container, pod.uid),
        share=request.share or (min(1.0, request.size / total) if total else 0.0),
        memory_limit_bytes=request.size or inventory.enforced.get((pod.uid, container, card)),
        resource=request.name,
        device_id=group,
        system=NAME,
        source="annotation",
    )


def _container(pod: Pod) -> str:
    """Return the container that is named, else the first of the spec; none, if the spec is not known."""
    if named := pod.annotations.get(CONTAINER):
        return named if any(container.name == named for container in pod.containers) else ""
    return next((container.name for container in pod.main_containers), "")


def _request_lines(wanted: WantedPart) -> str:
    return f'{FRACTION}: "{ceil((wanted.ratio or 1.0) * 100) / 100}"'


SYSTEM = SharingSystem(
    name=NAME,
    signs=(GROUP, FRACTION),
    needs="the pods' labels and annotations, and reservation pods in KAI's namespaces or those of --sharing.namespaces",
    explains=explains,
    claims=claims,
    withdraws=withdraws,
    excused=excused,
    cards=cards,
    annotations=(GROUP, FRACTION, MEMORY, RECEIVED, RESERVED_CARD),
    lasts=True,  # neither the spec nor the kubelet knows of a fraction
    request=PartRequest(PORTION, _request_lines),
)
