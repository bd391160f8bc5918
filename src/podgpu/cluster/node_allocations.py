"""A node as Kubernetes alone knows it: its cards, and which containers they were allocated to.

A card without a UUID gets a name that only this module uses: no document holds it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from podgpu import __version__, sharing
from podgpu.cluster import demand
from podgpu.model import (
    UNKNOWN,
    Allocation,
    Booking,
    Card,
    Claim,
    ClusterNode,
    ContainerRef,
    Device,
    Gpu,
    KubeNode,
    Pod,
    PodContainer,
    PoolDevice,
    ResourceClaim,
    Snapshot,
    Tenant,
    Workload,
)
from podgpu.model.kube import STATUS, only
from podgpu.sharing import exclusive, kube_cards
from podgpu.sharing.inventory import Inventory

WHOLE = "nvidia.com/gpu"
COUNT, MEMORY, PRODUCT = "nvidia.com/gpu.count", "nvidia.com/gpu.memory", "nvidia.com/gpu.product"
REPLICAS, STRATEGY = "nvidia.com/gpu.replicas", "nvidia.com/gpu.sharing-strategy"
MIG_PRODUCT, SHARED_PRODUCT = "-MIG-", "-SHARED"  # within the product, where what is offered is no whole card
MIB = 1 << 20

NUMBERED, NAMELESS = "GPU", "GPU?"  # what names of cards without a UUID begin with


def is_made_up(uuid: str) -> bool:
    return bool(uuid) and not uuid.startswith("GPU-")


def model_of(node: KubeNode) -> str:
    """The model by the node's label, which has dashes for blanks, and what is added for shared cards."""
    product = node.labels.get(PRODUCT, "")
    return product.partition(MIG_PRODUCT)[0].removesuffix(SHARED_PRODUCT)


def known_cards(inventory: Inventory) -> tuple[Device, ...]:
    """Return each card once: those with a UUID or a number, then those of which only the count is known."""
    known = _named_cards(sharing.cards(inventory))
    missing, in_mig_mode = _missing(inventory, known, sharing.node_annotations())
    cards = [kube_cards.card()] * missing + [kube_cards.card(in_mig_mode=True)] * in_mig_mode
    nameless = [_called(card, f"{NAMELESS}{place}") for place, card in enumerate(cards)]
    return tuple(_described(card, inventory.node) for card in (*known, *nameless))


def _named_cards(said: Iterable[Device]) -> list[Device]:
    """Join what several systems say of a card. Return the cards by number, then those without a number."""
    cards: list[Device] = []
    for new in said:
        place = next((place for place, old in enumerate(cards) if _is_same(old.gpu, new.gpu)), None)
        if place is None:
            cards.append(new)
        else:
            cards[place] = _joined(cards[place], new)
    cards.sort(key=lambda card: (card.gpu.index == UNKNOWN, card.gpu.index, card.gpu.uuid))
    return [
        card
        if card.gpu.uuid
        else _called(card, NAMELESS if card.gpu.index == UNKNOWN else f"{NUMBERED}{card.gpu.index}")
        for card in cards
    ]


def _is_same(old: Gpu, new: Gpu) -> bool:
    if old.uuid and new.uuid:
        return old.uuid == new.uuid
    return old.index == new.index and (old.index != UNKNOWN or old.uuid == new.uuid)


def _joined(old: Device, new: Device) -> Device:
    mine, its = old.gpu, new.gpu
    migs = {instance.mig.uuid: instance for instance in (*new.instances, *old.instances)}
    return replace(
        old,
        gpu=replace(
            mine,
            uuid=mine.uuid or its.uuid,
            index=its.index if mine.index == UNKNOWN else mine.index,
            minor=its.minor if mine.minor is None else mine.minor,
            model=mine.model or its.model,
            mig_enabled=bool(migs),
        ),
        readings=old.readings or new.readings,
        instances=tuple(migs[name] for name in sorted(migs)),
    )


def _called(device: Device, name: str) -> Device:
    return replace(device, gpu=replace(device.gpu, uuid=name))


def _described(device: Device, node: KubeNode) -> Device:
    """Fill in what labels say of all cards of the node alike."""
    size = node.labels.get(MEMORY, "")
    is_of_cards = MIG_PRODUCT not in node.labels.get(PRODUCT, "")
    labelled = int(size) * MIB if is_of_cards and size.isascii() and size.isdigit() and len(size) < 9 else 0
    readings = kube_cards.card(memory=labelled).readings
    return replace(
        device,
        gpu=replace(device.gpu, model=device.gpu.model or model_of(node)),
        readings=device.readings or readings,
    )


def _missing(inventory: Inventory, known: list[Device], registers: Collection[str]) -> tuple[int, int]:
    """How many cards there are besides those that are known, and how many in MIG mode besides these.

    NVIDIA's label counts both. The card of nameless MIG instances stands for one, though it may be several.
    """
    node = inventory.node
    is_of_cards = MIG_PRODUCT not in node.labels.get(PRODUCT, "")
    labelled = min(kube_cards.offered(node.labels, COUNT), kube_cards.MOST_CARDS) if is_of_cards else 0
    is_whole = hands_out_whole(inventory, registers)
    whole = min(kube_cards.offered(node.capacity, WHOLE), kube_cards.MOST_CARDS) if is_whole else 0
    in_mig_mode = kube_cards.least_in_mig_mode(node)
    if in_mig_mode and is_whole:
        in_mig_mode = max(in_mig_mode, labelled - whole)
    hidden = max(0, in_mig_mode - sum(bool(card.instances) for card in known))
    if labelled:
        left = max(0, labelled - len(known))
        hidden = min(hidden, left)
        return left - hidden, hidden
    others = set(_of_others(inventory))
    own = [card for card in known if not card.instances and card.gpu.uuid not in others]
    return max(0, whole - len(own)), hidden


def hands_out_whole(inventory: Inventory, registers: Collection[str]) -> bool:
    """Whether the plain resource means whole cards on this node: no label, id or register says otherwise."""
    node = inventory.node
    product = node.labels.get(PRODUCT, "")
    is_shared = (
        node.labels.get(REPLICAS, "1") not in ("", "0", "1")
        or node.labels.get(STRATEGY, "none") != "none"
        or MIG_PRODUCT in product
        or product.endswith(SHARED_PRODUCT)
        or any(name in registers for name in node.annotations)
    )
    ids = (each.device_id for each in inventory.allocations if each.resource == WHOLE and each.device_id)
    return not is_shared and all(map(kube_cards.UUID.fullmatch, ids))


def _of_others(inventory: Inventory) -> Iterator[str]:
    """Name the cards that are handed out by other resources and by drivers."""
    for allocation in inventory.allocations:
        if allocation.resource != WHOLE and (named := kube_cards.UUID.match(allocation.device_id)):
            yield named[0]
    yield from (device.attributes.get("uuid", "") for device in inventory.pool_devices)


DETAIL = "nothing reads its GPUs: only what Kubernetes allocated is known. Install the agent to see what is used"
NO_AGENT = "no_agent"


class NodeObjects(Struct, frozen=True, kw_only=True):
    """All objects that concern a node. While they are equal, so are its allocations."""

    node: KubeNode
    pods: tuple[Pod, ...] = ()
    claims: tuple[ResourceClaim, ...] = ()
    devices: tuple[PoolDevice, ...] = ()
    workloads: Mapping[str, Workload] = {}
    namespaces: tuple[str, ...] = ()  # those of sharing systems themselves, besides the usual ones


def node_allocations(found: NodeObjects, at: float, pod_labels: Collection[str] = ()) -> ClusterNode:
    node, signs = found.node, sharing.signs()
    snapshot = _snapshot(found, at, pod_labels)
    return ClusterNode(
        name=node.name,
        state="allocation",
        origin="api",
        reason=NO_AGENT,
        detail=DETAIL,
        snapshot=snapshot,
        allocatable={name: text for name, text in node.allocatable.items() if sharing.is_gpu(name, signs)},
        model=only(card.gpu.model for card in snapshot.cards) if snapshot.cards else model_of(node),
        ready=node.ready,
        cordoned=node.cordoned or None,
        address=node.address,
    )


def _snapshot(found: NodeObjects, at: float, pod_labels: Collection[str]) -> Snapshot:
    signs = sharing.signs()
    allocations = [each for pod in found.pods for each in _allocations(pod, found.node, signs)]
    devices = known_cards(_inventory(found, allocations, ()))
    inventory = _inventory(found, allocations, devices)
    claims = sharing.claims(inventory)
    undecided = [claim for claim in sharing.ambiguous_claims(inventory) if claim.usual is None]
    by_count, left = _by_count(inventory, claims)
    claims = (*claims, *by_count)
    return Snapshot(
        node=found.node.name,
        taken_at=at,
        interval_seconds=0.0,
        version=__version__,
        cards=tuple(_card(device, claims, found) for device in devices),
        pods=tuple(_shown(pod, found, pod_labels) for pod in found.pods if not pod.finished),
        unclaimed=left,
        sharing=sharing.statuses(inventory, claims, undecided),
    )


def _inventory(found: NodeObjects, allocations: Iterable[Allocation], devices: Iterable[Device]) -> Inventory:
    return Inventory(
        devices,
        allocations,
        pods=found.pods,
        resource_claims=[claim for claim in found.claims if claim.devices],
        pool_devices=found.devices,
        source=STATUS,
        node=found.node,
        namespaces=found.namespaces,
    )


def _allocations(pod: Pod, node: KubeNode, signs: tuple[str, ...]) -> Iterator[Allocation]:
    """Yield what was allocated to a pod's containers, by their status, else by what they ask for."""
    for container in pod.containers:
        allocated = partial(Allocation, namespace=pod.namespace, pod=pod.name, container=container.name)
        status = [(name, uid) for name, uid in container.devices if not name.startswith("claim:")]
        yield from (allocated(resource=resource, device_id=device_id) for resource, device_id in status)
        if (demand.passes(container) and not container.running) or container.is_ephemeral or not pod.node:
            continue
        for resource in sorted(_asked(container, node, signs) - {name for name, _ in status}):
            if units := kube_cards.count(container.limits[resource]):
                yield allocated(resource=resource, device_id="", units=units)


def _asked(container: PodContainer, node: KubeNode, signs: tuple[str, ...]) -> set[str]:
    """Return which GPU resources of the node a container asks for."""
    # If the node itself could not be read, it is not known what its kubelet hands out.
    offered = node.capacity or container.limits
    return {resource for resource in container.limits.keys() & offered.keys() if sharing.is_gpu(resource, signs)}


def _counted(inventory: Inventory) -> Iterator[Allocation]:
    """Yield the allocations that no sharing system understands.

    Init containers use what the others of their pod are given later, so of them only what they need beyond that counts.
    """
    passing = {
        (pod.namespace, pod.name, container.name)
        for pod in inventory.pods
        for container in pod.containers
        if demand.passes(container)
    }
    for allocation in sharing.unclaimed(inventory):
        if allocation.device_id or allocation.names not in passing:
            yield allocation
    signs = sharing.signs()
    for pod in inventory.pods:
        initial = [container for container in pod.containers if demand.passes(container)]
        for resource in sorted({name for container in initial for name in _asked(container, inventory.node, signs)}):
            if more := demand.beyond(pod.containers, resource):
                container, units = more
                allocation = Allocation(
                    namespace=pod.namespace,
                    pod=pod.name,
                    container=container.name,
                    resource=resource,
                    device_id="",
                    units=int(units),
                )
                if not sharing.is_understood(allocation, inventory):
                    yield allocation


def _by_count(inventory: Inventory, claims: Iterable[Claim]) -> tuple[list[Claim], tuple[Allocation, ...]]:
    """Place containers of which only the number of cards is known: each gets some card that has no name.

    Return the claims, and the allocations that cannot be placed.
    """
    held = {claim.gpu for claim in claims}
    free = [card.gpu.uuid for card in inventory.devices if _is_placeable(card) and card.gpu.uuid not in held]
    is_whole = hands_out_whole(inventory, sharing.node_annotations())
    found: list[Claim] = []
    left: list[Allocation] = []
    for allocation in _counted(inventory):
        if is_whole and allocation.resource == WHOLE and not allocation.device_id and allocation.units <= len(free):
            chosen, free = free[: allocation.units], free[allocation.units :]
            found += [inventory.claim(allocation, card, system=exclusive.NAME) for card in chosen]
        else:
            left.append(replace(allocation, memory_bytes=sharing.memory_of(allocation, inventory)))
    return found, tuple(left)


def _is_placeable(device: Device) -> bool:
    """Whether only the count of such cards is known. A card with a number is a certain card, so it must be named."""
    return device.gpu.uuid.startswith(NAMELESS) and not device.gpu.mig_enabled


def _card(device: Device, claims: Iterable[Claim], found: NodeObjects) -> Card:
    uuid = "" if is_made_up(device.gpu.uuid) else device.gpu.uuid
    started = {pod.uid: pod.started_at for pod in found.pods}
    held: dict[tuple[ContainerRef, str], list[Claim]] = {}
    for claim in claims:
        if claim.gpu == device.gpu.uuid:
            held.setdefault((claim.container, claim.mig), []).append(replace(claim, gpu=uuid))
    return Card(
        gpu=replace(device.gpu, uuid=uuid, minor=None),
        ability=device.ability,
        readings=device.readings,
        instances=device.instances,
        tenants=tuple(
            Tenant(
                container=container,
                mig=mig,
                workload=found.workloads.get(container.pod_uid),
                held_since=started.get(container.pod_uid),
                claims=tuple(own),
                booking=_booking(own),
            )
            for (container, mig), own in sorted(held.items())
        ),
    )


def _booking(claims: Sequence[Claim]) -> Booking:
    """What a container holds is known; what it uses is not. Nor is the part of the card that a MIG instance is."""
    limits = [claim.memory_limit_bytes for claim in claims]
    is_part = any(claim.mig or not claim.share for claim in claims)
    return Booking(
        bookable=False,
        memory_limit_bytes=sum(filter(None, limits)) if all(limits) else None,
        allocated_ratio=None if is_part else min(1.0, sum(claim.share for claim in claims)),
    )


def _shown(pod: Pod, found: NodeObjects, pod_labels: Collection[str]) -> Pod:
    """Labels only as far as they are allowed; annotations may hold secrets and stay here."""
    labels = {key: value for key, value in pod.labels.items() if key in pod_labels}
    return replace(pod, annotations={}, labels=labels, workload=found.workloads.get(pod.uid))
