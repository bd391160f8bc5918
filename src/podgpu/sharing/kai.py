"""KAI Scheduler and Run:ai: fractions of a card, for pods that the kubelet gave nothing.

A reservation pod holds each shared card as a whole. Pods with a part of it carry the label of its group. So the card
of a group is the one that the kubelet allocated to its reservation pod. If the kubelet's list is missing, or its ids
are not UUIDs, the annotation that the reservation pod wrote on itself names the card. A pod has the fraction, or the
MiB, that it asked for of each of its cards. Reservation pods themselves have nothing of their cards.

Reservation pods have a namespace of their own, where tenants can write nothing: that alone is proof. Names, labels and
annotations are not, since tenants can write them. Where KAI is not installed, a tenant who may create namespaces can
choose the name of KAI's. So the usual names count only if other pods of the node name the scheduler that uses them.
`--sharing.namespaces` has the namespace's name if an administrator has changed it, and for KAI before 0.6.

A pod's author can change the request after the scheduler has read it. The highest request counts.

By default nothing enforces a fraction. If HAMi's library does, its file in the container has the limit.

In the mode NvFractions, which does enforce memory, annotations have the container in their names, and bytes as their
values: `nvidia.com/container.NAME.gpu-memory.request` and `.limit`, in the first drafts `nvidia.cdi.k8s.io/NAME…`. Each
is the other's default. They take precedence. The binder adds them to a pod that asks for a fraction, in whole MiB.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from math import ceil
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from podgpu.model import Allocation, Claim, ContainerRef, Device, Excused, Pod
from podgpu.model.fit import PORTION
from podgpu.sharing import kube_cards
from podgpu.sharing.inventory import MIB, Inventory
from podgpu.sharing.kube_cards import size
from podgpu.sharing.system import PartRequest, SharingSystem

NAME = "kai"
GROUP = "runai-gpu-group"
ONE_OF_SEVERAL_GROUPS = f"{GROUP}/"
FRACTION, MEMORY = "gpu-fraction", "gpu-memory"
CARDS = "gpu-fraction-num-devices"
CONTAINER = "gpu-fraction-container-name"
RECEIVED = "received-resource-type"
SCHEDULERS = {"kai-resource-reservation": "kai-scheduler", "runai-reservation": "runai-scheduler"}  # by namespace
RESERVATION_PODS = ("gpu-reservation-", "runai-reservation-gpu-")  # what their names begin with
RESERVED_CARD = "run.ai/reserve_for_gpu_index"  # in truth its UUID
GPUS = "nvidia.com/"

PER_CONTAINER = ("nvidia.com/container.", "nvidia.cdi.k8s.io/")
REQUEST, LIMIT = "request", "limit"

_OF_CONTAINER = re.compile(
    r"nvidia\.(?:com/container\.|cdi\.k8s\.io/(?:container\.)?)(?P<container>[^.]+)\.gpu-memory\.(?P<what>request|limit)"
)
_FRACTION = re.compile(r"(?:[0-9]{1,3}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:[eE][-+]?[0-9]{1,3})?")

PodName: TypeAlias = tuple[str, str]  # namespace, name


class FractionRequest(Struct, frozen=True, kw_only=True):
    """What a pod asked for of each card: a share, or bytes. `limit` is enforced; `container` is named with it."""

    name: str
    share: float = 0.0
    size: int = 0
    limit: int = 0
    container: str = ""


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
    """Yield the reservation pods, each with the card that it holds for others."""
    reserved = inventory.once(_reservations)
    for held in inventory.allocations:
        if held.resource.startswith(GPUS) and _is_reservation(held.namespace, held.pod, inventory):
            named = held.device_id if held.device_id in inventory.gpus else ""
            card = named or reserved.get((held.namespace, held.pod), "")
            proof = f"its namespace {held.namespace} is the sharing system's own"
            if held.namespace not in inventory.namespaces:
                proof += f", and other pods here name {SCHEDULERS[held.namespace]} as their scheduler"
            yield card, Excused(role="reservation", proof=proof, container=inventory.container(held))


def cards(inventory: Inventory) -> Iterator[Device]:
    """Yield the cards in annotations of reservation pods, where tenants can write nothing."""
    reserving = (pod for pod in inventory.pods if _is_own(pod.namespace, inventory) and not pod.finished)
    return kube_cards.by_uuid(pod.annotations.get(RESERVED_CARD, "") for pod in reserving)


def _is_own(namespace: str, inventory: Inventory) -> bool:
    """What an administrator says counts alone: a tenant may have created a namespace of a usual name."""
    return namespace in (inventory.namespaces or inventory.once(_usual_namespaces))


def _usual_namespaces(inventory: Inventory) -> frozenset[str]:
    """Return those whose scheduler other pods of the node name. No such namespace vouches for itself or the other."""
    named = {pod.scheduler for pod in inventory.pods if not pod.finished and pod.namespace not in SCHEDULERS}
    return frozenset(namespace for namespace, scheduler in SCHEDULERS.items() if scheduler in named)


def _is_reservation(namespace: str, pod: str, inventory: Inventory) -> bool:
    """Whether a pod is a reservation pod. If labels are not known, its name sets it apart in its namespace."""
    by_name = _is_own(namespace, inventory) and pod.startswith(RESERVATION_PODS)
    return by_name or (namespace, pod) in inventory.once(_reservations)


def _is_fraction(pod: Pod, inventory: Inventory) -> bool:
    received = pod.annotations.get(RECEIVED, "Fraction")
    return received == "Fraction" and not pod.finished and not _is_own(pod.namespace, inventory)


def _reservations(inventory: Inventory) -> dict[PodName, str]:
    """Return the card of each reservation pod; an empty text, as long as it is not known."""
    ids: defaultdict[PodName, list[str]] = defaultdict(list)
    for allocation in inventory.allocations:
        if allocation.resource.startswith(GPUS):
            ids[allocation.namespace, allocation.pod].append(allocation.device_id)
    return {
        (pod.namespace, pod.name): _card(pod, ids[pod.namespace, pod.name], inventory)
        for pod in inventory.pods
        if GROUP in pod.labels and not pod.finished and _is_own(pod.namespace, inventory)
    }


def _card(pod: Pod, ids: list[str], inventory: Inventory) -> str:
    """Return the card that the pod's id names. If the id is no UUID, or the kubelet lists nothing, go by annotation."""
    if cards := inventory.gpus.intersection(ids):
        return min(cards) if len(cards) == 1 else ""
    annotated = pod.annotations.get(RESERVED_CARD, "")
    is_plausible = len(ids) == 1 or not inventory.allocations
    return annotated if is_plausible and annotated in inventory.gpus else ""


def _cards(inventory: Inventory) -> dict[str, str]:
    """Return the card of each group. A group of several cards is left out."""
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
    """A request that names its container takes precedence. A fraction beside it may be where it comes from."""
    plain, own = _plain_request(pod), _own_request(pod)
    if own is None or plain is None or not plain.share:
        return own or plain
    return replace(own, share=plain.share)


def _own_request(pod: Pod) -> FractionRequest | None:
    """Return the largest request with a container in its name. KAI admits one container."""
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for name, value in pod.annotations.items():
        if name.startswith(PER_CONTAINER) and (match := _OF_CONTAINER.fullmatch(name)) and (number := size(value)):
            found[match["container"]][match["what"]] = number
    requests = [
        FractionRequest(
            name=MEMORY,
            size=sizes.get(REQUEST) or sizes[LIMIT],
            limit=-(-(sizes.get(LIMIT) or sizes[REQUEST]) // MIB) * MIB,
            container=container,
        )
        for container, sizes in sorted(found.items())
    ]
    return max(requests, key=lambda request: request.size, default=None)


def _plain_request(pod: Pod) -> FractionRequest | None:
    fraction = pod.annotations.get(FRACTION, "")
    share = min(1.0, float(fraction)) if _FRACTION.fullmatch(fraction) else 0.0
    if share:
        return FractionRequest(name=FRACTION, share=share)
    mib = _number(pod, MEMORY, otherwise=0)
    return FractionRequest(name=MEMORY, size=mib * MIB) if mib else None


def _number(pod: Pod, annotation: str, *, otherwise: int) -> int:
    return kube_cards.number(pod.annotations.get(annotation, str(otherwise)), 8) or 0


def _claim(pod: Pod, group: str, card: str, request: FractionRequest, inventory: Inventory) -> Claim:
    container = _container(pod, request.container)
    limit = request.limit or request.size or inventory.enforced.get((pod.uid, container, card))
    return Claim(
        gpu=card,
        container=ContainerRef(pod.namespace, pod.name, container, pod.uid),
        share=_share(request, inventory.memory.get(card, 0)),
        memory_limit_bytes=limit,
        resource=request.name,
        device_id=group,
        system=NAME,
        source="annotation",
    )


def _share(request: FractionRequest, total: int) -> float:
    """Return the fraction, if the size beside it is no other than that fraction; 0 if the share is not known."""
    if request.share and (not (request.size and total) or int(total // MIB * request.share) == request.size // MIB):
        return request.share
    return min(1.0, request.size / total) if total else 0.0


def _container(pod: Pod, named: str) -> str:
    """Return the container that is named, else the first of the spec; an empty text, if the spec is not known."""
    if named := named or pod.annotations.get(CONTAINER, ""):
        return named if any(container.name == named for container in pod.containers) else ""
    return next((container.name for container in pod.main_containers), "")


SYSTEM = SharingSystem(
    name=NAME,
    signs=(GROUP, FRACTION, PER_CONTAINER[0]),
    needs="the pods' labels, annotations and schedulers, and reservation pods in KAI's namespaces "
    "or those of --sharing.namespaces",
    explains=explains,
    claims=claims,
    withdraws=withdraws,
    excused=excused,
    cards=cards,
    annotations=(GROUP, FRACTION, MEMORY, RECEIVED, RESERVED_CARD, *PER_CONTAINER),
    lasts=True,
    without_ids=True,  # neither the spec nor the kubelet knows of a fraction
    request=PartRequest(PORTION, lambda wanted: f'{FRACTION}: "{ceil((wanted.ratio or 1.0) * 100) / 100}"'),
)
