"""Koordinator: the scheduler writes on the pod which part of which card it has. There are no device ids.

The annotation applies to the whole pod. Its claims go to the container that the kubelet lists with a GPU, else to the
only container that asks for a GPU, else to the pod's only container, else to the pod: a container without a name.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from podgpu.model import Allocation, Claim, ContainerRef, Device, Pod
from podgpu.model.kube import quantity
from podgpu.sharing import kube_cards
from podgpu.sharing.inventory import Inventory, decoded
from podgpu.sharing.kube_cards import size
from podgpu.sharing.system import MinimumClaim, SharingSystem

NAME = "koordinator"
ANNOTATION = "scheduling.koordinator.sh/device-allocated"
GPUS = "koordinator.sh/gpu"
CORE = "koordinator.sh/gpu-core"
MEMORY = "koordinator.sh/gpu-memory"
MEMORY_RATIO = "koordinator.sh/gpu-memory-ratio"
ISOLATION = "koordinator.sh/gpu-isolation-provider"
SHARED = "koordinator.sh/gpu.shared"  # parts of that many cards
WHOLE_GPU = "nvidia.com/gpu"
PERCENT = 100
MOST_CARDS = 256  # of one annotation; the rest is ignored
REMEMBERED = 512  # annotations whose content is cached


class AllocatedCard(Struct):
    """`id` is the card's UUID, or something that does not help."""

    minor: Annotated[int, Meta(ge=0, lt=1 << 16)] | None = None
    id: str = ""
    resources: dict[str, str | int] = {}


class DeviceAllocated(Struct):
    gpu: list[AllocatedCard] = []


_decode = msgspec.json.Decoder(DeviceAllocated).decode


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    pod = inventory.pod(allocation) if allocation.resource.startswith(GPUS) else None
    return pod is not None and bool(_pod_claims(pod, inventory))


def claims(inventory: Inventory) -> Iterator[Claim]:
    listed = inventory.once(_listed)
    for pod in inventory.pods:
        # If the kubelet lists a card by its UUID, that counts: tenants can write annotations, not the kubelet's list.
        annotated = ANNOTATION in pod.annotations and not pod.finished
        if annotated and not _names_a_card(listed[pod.uid], inventory):
            container = ContainerRef(pod.namespace, pod.name, _container(pod, listed[pod.uid]), pod.uid)
            yield from (replace(claim, container=container) for claim in _pod_claims(pod, inventory))


def cards(inventory: Inventory) -> Iterator[Device]:
    """A card counts as 100 of the node's cores."""
    count = kube_cards.offered(inventory.node.capacity, CORE) // PERCENT
    memory = size(inventory.node.capacity.get(MEMORY, ""))
    yield from kube_cards.numbered(count, memory // count if count and memory else None)


def minimum(claim: Claim, inventory: Inventory) -> MinimumClaim | None:
    """Return what the spec asks for, which has a sum of all cards, in per cent. The container that asks most counts."""
    pod = inventory.by_uid.get(claim.container.pod_uid)
    if pod is None or not pod.phase:
        return None
    cards = _number(pod)
    cores = int((_asked(pod, CORE) or _asked(pod, GPUS) or _asked(pod, WHOLE_GPU) * PERCENT) / cards) / PERCENT
    ratio = int(_asked(pod, MEMORY_RATIO) / cards) / PERCENT
    memory, of_card = int(_asked(pod, MEMORY) / cards), inventory.memory.get(claim.gpu, 0)
    of_memory = int(memory * PERCENT / of_card) / PERCENT if of_card else 0.0
    return MinimumClaim(share=cores or ratio or of_memory, memory=memory, cores=cores)


def holdings(inventory: Inventory) -> Iterator[Allocation]:
    """Go by the pods' limits: there are no ids."""
    listed = inventory.once(_listed)
    for pod in inventory.pods:
        asks = any(name.startswith(GPUS) for container in pod.main_containers for name in container.limits)
        is_running = asks and pod.phase and not pod.finished
        if is_running and not _names_a_card(listed[pod.uid], inventory):
            yield Allocation(
                namespace=pod.namespace,
                pod=pod.name,
                container=_container(pod, listed[pod.uid]),
                resource=CORE,
                device_id="",
                units=_number(pod),
            )


def _number(pod: Pod) -> int:
    """Return how many cards a pod asks for: as many as it says, else by hundreds of per cent."""
    asked = _asked(pod, CORE) or _asked(pod, GPUS) or _asked(pod, MEMORY_RATIO)
    return int(_asked(pod, SHARED)) or max(1, -int(-asked // PERCENT))


def _asked(pod: Pod, resource: str) -> Fraction:
    asked = (quantity(container.limits.get(resource, "")) for container in pod.main_containers)
    return max((amount for amount in asked if amount), default=Fraction(0))


def _listed(inventory: Inventory) -> defaultdict[str, list[Allocation]]:
    """Return the kubelet's allocations by the UID of the pod."""
    listed: defaultdict[str, list[Allocation]] = defaultdict(list)
    for allocation in inventory.allocations:
        if pod := inventory.pod(allocation):
            listed[pod.uid].append(allocation)
    return listed


def _names_a_card(allocations: Iterable[Allocation], inventory: Inventory) -> bool:
    return any(True for allocation in allocations for _ in inventory.named(allocation.device_id))


def _container(pod: Pod, allocations: Iterable[Allocation]) -> str:
    listed = {allocation.container for allocation in allocations if _is_gpu(allocation.resource)}
    names = listed or _asking(pod) or {container.name for container in pod.main_containers}
    return next(iter(names)) if len(names) == 1 else ""


def _asking(pod: Pod) -> set[str]:
    """Name the containers with a limit on GPUs. What an init container asked for, other containers have after it."""
    asking = {
        container.name
        for container in pod.containers
        if any(_is_gpu(resource) and quantity(limit) for resource, limit in container.limits.items())
    }
    return asking.intersection(container.name for container in pod.main_containers) or asking


def _is_gpu(resource: str) -> bool:
    return resource.startswith(GPUS) or resource == WHOLE_GPU


def _pod_claims(pod: Pod, inventory: Inventory) -> list[Claim]:
    """Return the claims of the pod as a whole. No scheduler names a card twice: such a card is skipped."""
    entries = _entries(pod.annotations.get(ANNOTATION, ""))
    cards = [_card(entry, inventory) for entry in entries]
    times = Counter(cards)
    once = ((card, entry) for card, entry in zip(cards, entries, strict=True) if card and times[card] == 1)
    return [claim for card, entry in once if (claim := _claim(card, entry, pod))]


@lru_cache(REMEMBERED)
def _entries(text: str) -> list[AllocatedCard]:
    found = decoded(text, _decode) if text else None
    return found.gpu[:MOST_CARDS] if found else []


def _card(entry: AllocatedCard, inventory: Inventory) -> str | None:
    """Find the card. There is none if this node lacks it, or if the annotation contradicts itself."""
    by_minor = None if entry.minor is None else inventory.by_minor.get(str(entry.minor))
    if not entry.id.startswith("GPU-"):
        return by_minor
    return entry.id if entry.id in inventory.gpus and by_minor in (None, entry.id) else None


def _claim(card: str, entry: AllocatedCard, pod: Pod) -> Claim | None:
    """Claim a share of the cores, else of the memory.

    Koordinator counts in whole per cent, rounded down. So a share may be 0 where the bytes beside it are a limit.
    """
    percents = {name: quantity(entry.resources.get(name, "")) for name in (CORE, MEMORY_RATIO)}
    memory = size(entry.resources.get(MEMORY, ""))
    named = next((name for name, percent in percents.items() if percent), None)
    if named is None and not (memory and MEMORY_RATIO in entry.resources):
        return None
    percent = percents.get(named or "") or Fraction(0)
    return Claim(
        gpu=card,
        container=ContainerRef(pod.namespace, pod.name, "", pod.uid),
        share=float(min(percent / PERCENT, Fraction(1))),
        memory_limit_bytes=memory,
        core_limit_ratio=_core_limit(percents[CORE], pod),
        resource=named or MEMORY,
        device_id=entry.id if entry.minor is None else f"minor {entry.minor}",
        system=NAME,
        source="annotation",
    )


def _core_limit(percent: Fraction | None, pod: Pod) -> float | None:
    """Return the limit that a library in the container enforces, if the pod asks for one. A whole card needs none."""
    is_limited = bool(pod.labels.get(ISOLATION)) and percent is not None and percent < PERCENT
    return float(percent / PERCENT) if is_limited and percent else None


SYSTEM = SharingSystem(
    name=NAME,
    signs=(GPUS, ANNOTATION),
    needs="the pods' annotations",
    explains=explains,
    claims=claims,
    cards=cards,
    annotations=(ANNOTATION, ISOLATION),
    minimum=minimum,
    holdings=holdings,
    lasts=True,
    without_ids=True,
)
