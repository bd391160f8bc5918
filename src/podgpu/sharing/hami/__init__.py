"""HAMi: parts of a card's memory and cores.

The kubelet picks any ids `UUID-N`: only how many a container has is reliable. The scheduler writes the cards on the
pod. With `enableGetPreferredAllocation` the plugin follows the ids after all, which only a container's processes can
show. Where annotations cannot be seen, the cards are in the file that the library in the container keeps. Tenants can
write both, so neither counts for more than the kubelet allocated.

A share is the part of the cores, if these are limited, else the part of the card's memory. If that is not known, it is
0: the limit is a fact, a share would be a guess.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TypeAlias

from msgspec.structs import replace

from podgpu.model import Allocation, Claim, ContainerRef, Pod, VirtualGpu
from podgpu.model.fit import PORTION, WantedPart
from podgpu.model.kube import grouped, quantity
from podgpu.sharing import kube_cards
from podgpu.sharing.hami import annotation
from podgpu.sharing.hami.annotation import DEVICES_ALLOCATED, MIG_ALLOCATIONS, HamiDevice, lenders, matched
from podgpu.sharing.hami.cache_files import observe
from podgpu.sharing.inventory import GIB, MIB, Inventory
from podgpu.sharing.system import AmbiguousClaims, MinimumClaim, PartRequest, SharingSystem

NAME = "hami"
SIGNS: tuple[str, ...] = ("hami.io/vgpu-", "nvidia.com/gpumem", "nvidia.com/gpucores")
MEMORY, MEMORY_PERCENT, CORES = "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"
VENDOR = "nvidia.com/"
ALL_CORES = 100
NEAR_GIB = 1.5  # profiles are named after whole GB
ROUNDING = 1e-6

_UUID = kube_cards.UUID.pattern
_ID = re.compile(rf"{_UUID}-[0-9]{{1,5}}")
_REPLICA = re.compile(rf"{_UUID}::[0-9]{{1,5}}")
_PART = re.compile(rf"(?P<card>{_UUID})(?:-|::)[0-9]{{1,5}}")
_PROFILE = re.compile(r"[0-9]+g\.(?P<size>[0-9]+)gb.*")

Given: TypeAlias = dict[str, dict[str, list[Allocation]]]  # the ids of each container, by pod UID and name


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    pod = inventory.pod(allocation) if _is_own(allocation, inventory) else None
    return pod is not None and (pod.uid, allocation.container) in inventory.once(_holders)


def claims(inventory: Inventory) -> Iterator[Claim]:
    yield from inventory.once(_claims)


def ambiguous_claims(inventory: Inventory) -> Iterator[AmbiguousClaims]:
    """Yield where annotation and ids name different cards."""
    given = inventory.once(_given)
    for container, claims in grouped(inventory.once(_annotated), lambda claim: claim.container).items():
        listed = tuple(_listed(claims, given[container.pod_uid][container.container], inventory))
        if listed and {claim.gpu for claim in listed} != {claim.gpu for claim in claims}:
            yield AmbiguousClaims(options=(tuple(claims), listed), usual=0)


def withdraws(claim: Claim, inventory: Inventory) -> bool:
    """In its MPS mode HAMi has ids like those of NVIDIA's plugin, and does not keep to them."""
    holder = claim.container.pod_uid, claim.container.container
    is_replica = claim.system != NAME and _REPLICA.fullmatch(claim.device_id) is not None
    return is_replica and holder in inventory.once(_holders)


def minimum(claim: Claim, inventory: Inventory) -> MinimumClaim | None:
    """Return what the spec asks for of each card.

    Without limits, HAMi gives the whole card, unless its scheduler is set to give less: only an annotation shows that,
    and it counts for no less than one of the parts that the plugin divides a card into.
    """
    lender = inventory.once(_lenders).get(claim.container)
    limits = inventory.limits(lender or claim.container)
    if limits is None or not (claim.source == "annotation" or inventory.once(_is_here)):
        return None
    total = inventory.memory.get(claim.gpu, 0)
    percent = quantity(limits.get(MEMORY_PERCENT, "")) or 0
    mib = int(quantity(limits.get(MEMORY, "")) or percent * total / ALL_CORES / MIB)  # it counts in whole MiB
    memory = mib * MIB
    cores = float((quantity(limits.get(CORES, "")) or 0) / ALL_CORES)
    parts = inventory.once(_parts)[claim.gpu] if claim.source == "annotation" else 1
    of_memory = memory / total if total else 0.0
    unlimited = 1 / parts if parts and not (memory or cores) else 0.0
    return MinimumClaim(share=cores or of_memory or unlimited, memory=memory, cores=cores)


def _lenders(inventory: Inventory) -> dict[ContainerRef, ContainerRef]:
    """Return the containers that use an entry written for another one, and that other one."""
    found: dict[ContainerRef, ContainerRef] = {}
    for pod, counts, resources in inventory.once(_annotated_pods):
        refer = partial(ContainerRef, pod.namespace, pod.name, pod_uid=pod.uid)
        lent = lenders(pod, counts, resources)
        found |= {refer(container=name): refer(container=lender) for name, lender in lent.items()}
    return found


def holdings(inventory: Inventory) -> Iterator[Allocation]:
    """Each id is a part of another card, or a MIG instance.

    Leave out ids of other resources, unless an annotation that can be read shows that they are HAMi's.
    """
    annotated = inventory.once(_holders)
    for uid, containers in inventory.once(_given).items():
        for name, ids in containers.items():
            is_usual = _ID.fullmatch(ids[0].device_id) and ids[0].resource.startswith(VENDOR)
            if is_usual or (uid, name) in annotated:
                yield replace(ids[0], units=sum(given.units for given in ids))


def _is_here(inventory: Inventory) -> bool:
    """Whether anything but ids shows that HAMi runs on this node: other plugins have such ids too."""
    limits = (name for pod in inventory.pods for container in pod.containers for name in container.limits)
    annotated = any(DEVICES_ALLOCATED in pod.annotations for pod in inventory.pods)
    return annotated or bool(inventory.vgpus) or any(name.startswith(SIGNS) for name in limits)


def _parts(inventory: Inventory) -> Counter[str]:
    """Count the parts that the plugin divides each card into: for a while after a kubelet's restart there are none."""
    offered = (_PART.fullmatch(device_id) for _, device_id in inventory.allocatable)
    return Counter(part["card"] for part in offered if part)


def _holders(inventory: Inventory) -> set[tuple[str, str]]:
    return {(claim.container.pod_uid, claim.container.container) for claim in inventory.once(_claims)}


def _claims(inventory: Inventory) -> tuple[Claim, ...]:
    annotated = inventory.once(_annotated)
    return (*annotated, *_within(list(_by_cache(inventory)), annotated))


def _listed(annotated: Sequence[Claim], ids: Sequence[Allocation], inventory: Inventory) -> Iterator[Claim]:
    """Claim the annotated parts on the cards that the ids name, unless the parts differ: which is where is unknown."""
    named = [next(inventory.named(allocation.device_id), "") for allocation in ids]
    parts = {(claim.memory_limit_bytes, claim.core_limit_ratio) for claim in annotated}
    is_whole = len(annotated) == len(ids) and not any(claim.mig for claim in annotated)
    if not is_whole or len(parts) > 1 or "" in named or len(set(named)) < len(named):
        return
    ((memory, cores),) = parts
    for card, allocation in zip(named, ids, strict=True):
        part = HamiDevice(
            text=allocation.device_id, card=card, memory=memory or 0, cores=round((cores or 0.0) * ALL_CORES)
        )
        index = annotated[0].index if len(ids) == 1 else None
        yield _claim(allocation, part, "annotation", index, inventory)


def _is_own(allocation: Allocation, inventory: Inventory) -> bool:
    """Whether an id is HAMi's. The resource may have any name, if the pod has an annotation.

    Ids like those of NVIDIA's plugin are HAMi's only on a node where its library has left a file. Where ids are not
    known, the annotation is enough.
    """
    if _ID.fullmatch(allocation.device_id) and allocation.resource.startswith(VENDOR):
        return True
    pod = inventory.pod(allocation)
    if pod is None or DEVICES_ALLOCATED not in pod.annotations:
        return False
    if not allocation.device_id:
        return allocation.resource.startswith(VENDOR)
    form = _REPLICA if inventory.vgpus and "::" in allocation.device_id else _ID
    return form.fullmatch(allocation.device_id) is not None


def _given(inventory: Inventory) -> Given:
    given: Given = {}
    for allocation in inventory.allocations:
        if _is_own(allocation, inventory) and (pod := inventory.pod(allocation)):
            given.setdefault(pod.uid, {}).setdefault(allocation.container, []).append(allocation)
    return given


def _annotated_pods(inventory: Inventory) -> list[tuple[Pod, dict[str, int], set[str]]]:
    """Return the annotated pods that have ids: how many each container has, and of which resources."""
    given = inventory.once(_given)
    found = []
    for pod in inventory.pods:
        held = given.get(pod.uid, {}) if DEVICES_ALLOCATED in pod.annotations else {}
        if held:
            counts = {container: sum(allocation.units for allocation in ids) for container, ids in held.items()}
            found.append((pod, counts, {allocation.resource for ids in held.values() for allocation in ids}))
    return found


def _annotated(inventory: Inventory) -> tuple[Claim, ...]:
    """A container has no card twice, unless it has several of its MIG instances."""
    given = inventory.once(_given)
    found = {
        (pod.uid, container, claim.mig or claim.gpu): claim
        for pod, counts, resources in inventory.once(_annotated_pods)
        for container, entry in matched(pod, counts, resources).items()
        for index, device in reversed(list(enumerate(entry)))
        if device and device.card in inventory.gpus
        for claim in [_claim(given[pod.uid][container][0], device, "annotation", index, inventory)]
    }
    return tuple(reversed(found.values()))


def _by_cache(inventory: Inventory) -> Iterator[Claim]:
    """Claim by a container's own file, if its pod's annotations cannot be seen, and no more cards than it has ids."""
    given = inventory.once(_given)
    bare = {pod.uid for pod in inventory.pods if not (pod.annotations or pod.phase)}
    believed = (vgpu for vgpu in inventory.vgpus if vgpu.pod_uid in bare)
    files = grouped(believed, lambda vgpu: (vgpu.pod_uid, vgpu.container))
    shared = _shared(inventory) if files else set()
    for (uid, container), vgpus in files.items():
        held = given.get(uid, {}).get(container, [])
        if len(vgpus) <= len(held):
            for vgpu in vgpus:
                if vgpu.gpu in shared:
                    yield _claim(held[0], _device_of(vgpu), "cache", vgpu.index, inventory)


def _shared(inventory: Inventory) -> set[str]:
    """Return the cards that a file may name: those without MIG that no other system's id names."""
    foreign = (allocation.device_id for allocation in inventory.allocations if not _is_own(allocation, inventory))
    others = {card for device_id in foreign for card in inventory.named(device_id)}
    return set(inventory.gpus) - set(inventory.instances.values()) - others


def _within(cached: Sequence[Claim], annotated: Sequence[Claim]) -> Iterator[Claim]:
    """Divide what annotations leave of a card among the files, so that a large number in one costs the others nothing.

    If there is too little for all of them, each has at most an equal part of it.
    """
    taken: defaultdict[str, float] = defaultdict(float)
    for claim in annotated:
        taken[claim.gpu] += claim.share
    for card, rivals in grouped(cached, lambda claim: claim.gpu).items():
        left = max(0.0, 1.0 - taken[card])
        suffices = sum(claim.share for claim in rivals) <= left + ROUNDING
        most = 1.0 if suffices else left / len(rivals)
        for claim in rivals:
            yield replace(claim, share=min(claim.share, most))


def _device_of(vgpu: VirtualGpu) -> HamiDevice:
    """Without a limit on cores, the library writes 100 %."""
    cores = round((vgpu.core_limit_ratio or 0.0) * ALL_CORES)
    return HamiDevice(
        text=f"{vgpu.pod_uid}_{vgpu.container}/{vgpu.index}",
        card=vgpu.gpu,
        memory=vgpu.memory_limit_bytes or 0,
        cores=cores if cores < ALL_CORES else 0,
    )


def _claim(allocation: Allocation, device: HamiDevice, source: str, index: int | None, inventory: Inventory) -> Claim:
    instance = _instance(device, inventory)
    return inventory.claim(
        allocation,
        instance or device.card,
        system=NAME,
        share=1.0 if instance else _share(device, inventory),
        memory=device.memory or None,
        cores=None if instance or not device.cores else device.cores / ALL_CORES,
        device_id=device.text,
        source=source,
        index=index,
    )


def _instance(device: HamiDevice, inventory: Inventory) -> str | None:
    """Find the MIG instance by its UUID in the annotation, or by its place if it is as large as annotated."""
    if inventory.instances.get(device.mig) == device.card:
        return device.mig
    instances = inventory.migs.get(device.card, ())
    if device.place is None or device.place >= len(instances):
        return None
    found = instances[device.place]
    profile = _PROFILE.fullmatch(found.profile)
    is_as_large = profile is not None and abs(int(profile["size"]) - device.memory / GIB) <= NEAR_GIB
    return found.uuid if is_as_large else None


def _share(device: HamiDevice, inventory: Inventory) -> float:
    if device.cores:
        return device.cores / ALL_CORES
    total = inventory.memory.get(device.card)
    return min(1.0, device.memory / total) if total else 0.0


def _request_lines(wanted: WantedPart) -> str:
    size = -(-(wanted.memory_bytes or 0) // MIB)
    return f"{MEMORY}: {size}\n{CORES}: {round((wanted.core_ratio or 1.0) * ALL_CORES)}"


SYSTEM = SharingSystem(
    name=NAME,
    signs=SIGNS,
    needs="the kubelet's list of devices, and the pods' annotations or the node's /usr/local/vgpu",
    explains=explains,
    claims=claims,
    withdraws=withdraws,
    ambiguous_claims=ambiguous_claims,
    observe=observe,
    cards=annotation.cards,
    node_annotations=(annotation.NODE_CARDS,),
    annotations=(DEVICES_ALLOCATED, MIG_ALLOCATIONS),
    minimum=minimum,
    holdings=holdings,
    lasts=True,  # without limits, nothing else shows how much
    request=PartRequest(PORTION, _request_lines),
)
