"""A node as Kubernetes alone knows it: its cards, and which containers they were allocated to."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podgpu import __version__, sharing
from podgpu.cluster import known_cards
from podgpu.model import (
    Allocation,
    Booking,
    Card,
    Claim,
    ClusterNode,
    ContainerRef,
    Device,
    KubeNode,
    Pod,
    PodContainer,
    PoolDevice,
    ResourceClaim,
    Snapshot,
    Tenant,
    Workload,
)
from podgpu.sharing import exclusive, kube_cards
from podgpu.sharing.inventory import Inventory

STATUS, SPEC = "pod status", "pod spec"  # who reported a claim
DETAIL = (
    "nothing reads its GPUs: only what Kubernetes allocated is known. Install the agent to see what is used"
)
NO_AGENT = "no_agent"


class NodeObjects(Struct, frozen=True, kw_only=True):
    """All objects that concern a node. While they are equal, so are its allocations."""

    node: KubeNode
    pods: tuple[Pod, ...] = ()
    claims: tuple[ResourceClaim, ...] = ()
    devices: tuple[PoolDevice, ...] = ()
    workloads: Mapping[str, Workload] = {}
    namespaces: tuple[str, ...] = ()  # those of sharing systems themselves, besides the usual ones


def node_allocations(
    found: NodeObjects, systems: Sequence[sharing.SharingSystem], at: float, pod_labels: Collection[str] = ()
) -> ClusterNode:
    node, signs = found.node, sharing.signs_of(systems)
    snapshot = _snapshot(found, systems, at, pod_labels)
    return ClusterNode(
        name=node.name,
        state="allocation",
        origin="api",
        reason=NO_AGENT,
        detail=DETAIL,
        snapshot=snapshot,
        allocatable={name: text for name, text in node.allocatable.items() if sharing.is_gpu(name, signs)},
        model=_model(node, snapshot),
        ready=node.ready,
        address=node.address,
    )


def _model(node: KubeNode, snapshot: Snapshot) -> str:
    models = {card.gpu.model for card in snapshot.cards}
    return models.pop() if len(models) == 1 else "" if models else known_cards.model_of(node)


def _snapshot(
    found: NodeObjects, systems: Sequence[sharing.SharingSystem], at: float, pod_labels: Collection[str]
) -> Snapshot:
    signs = sharing.signs_of(systems)
    given = [allocation for pod in found.pods for allocation in _given(pod, found.node, signs)]
    devices = known_cards.known_cards(_inventory(found, given, ()), systems)
    inventory = _inventory(found, given, devices)
    claims = sharing.claims(inventory, systems)
    undecided = [claim for claim in sharing.ambiguous_claims(inventory, systems) if claim.usual is None]
    by_count, left = _by_count(inventory, claims, systems)
    claims = (*claims, *by_count)
    return Snapshot(
        node=found.node.name,
        taken_at=at,
        interval_seconds=0.0,
        version=__version__,
        cards=tuple(_card(device, claims, found) for device in devices),
        pods=tuple(_shown(pod, found, pod_labels) for pod in found.pods if not pod.finished),
        unclaimed=left,
        sharing=sharing.statuses(inventory, claims, systems, undecided),
    )


def _inventory(found: NodeObjects, given: Iterable[Allocation], devices: Iterable[Device]) -> Inventory:
    return Inventory(
        devices,
        given,
        pods=found.pods,
        resource_claims=[claim for claim in found.claims if claim.devices],
        pool_devices=found.devices,
        source=STATUS,
        node=found.node,
        namespaces=found.namespaces,
    )


def _given(pod: Pod, node: KubeNode, signs: tuple[str, ...]) -> Iterator[Allocation]:
    """Yield what a pod's containers were given, by their status, else by what they asked this node for."""
    for container in pod.containers:
        status = [(name, uid) for name, uid in container.devices if not name.startswith("claim:")]
        yield from (_allocation(pod, container, resource, device_id) for resource, device_id in status)
        if (container.is_init and not container.running) or container.is_ephemeral or not pod.node:
            continue
        listed = {name for name, _ in status}
        # If the node itself could not be read, it is not known what its kubelet hands out.
        offered = node.capacity or container.limits
        for resource in sorted(container.limits.keys() & offered.keys() - listed):
            units = kube_cards.count(container.limits[resource])
            if units and sharing.is_gpu(resource, signs):
                yield replace(_allocation(pod, container, resource, ""), units=units)


def _allocation(pod: Pod, container: PodContainer, resource: str, device_id: str) -> Allocation:
    return Allocation(
        namespace=pod.namespace,
        pod=pod.name,
        container=container.name,
        resource=resource,
        device_id=device_id,
    )


def _by_count(
    inventory: Inventory, claims: Iterable[Claim], systems: Sequence[sharing.SharingSystem]
) -> tuple[list[Claim], tuple[Allocation, ...]]:
    """Place containers of which only the number of cards is known: each gets some card that has no name.

    Return the claims, and the allocations that cannot be placed.
    """
    held = {claim.gpu for claim in claims}
    free = [card.gpu.uuid for card in inventory.devices if _is_placeable(card) and card.gpu.uuid not in held]
    is_whole = known_cards.hands_out_whole(inventory, sharing.node_annotations_of(systems))
    found: list[Claim] = []
    left: list[Allocation] = []
    for allocation in sharing.unclaimed(inventory, systems):
        if (
            is_whole
            and allocation.resource == known_cards.WHOLE
            and not allocation.device_id
            and allocation.units <= len(free)
        ):
            mine, free = free[: allocation.units], free[allocation.units :]
            found += [
                replace(inventory.claim(allocation, card, system=exclusive.NAME), source=SPEC)
                for card in mine
            ]
        else:
            left.append(replace(allocation, memory_bytes=sharing.memory_of(allocation, inventory, systems)))
    return found, tuple(left)


def _is_placeable(device: Device) -> bool:
    """Whether only the count of such cards is known. A card with a number is a certain card, so it must be named."""
    return device.gpu.uuid.startswith(known_cards.NAMELESS) and not device.instances


def _card(device: Device, claims: Iterable[Claim], found: NodeObjects) -> Card:
    uuid = "" if known_cards.is_made_up(device.gpu.uuid) else device.gpu.uuid
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
    """What it was given is known; what it uses is not. On a MIG instance the part of the card is not known either."""
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
