"""Snapshots of nodes that are as small as they can be."""

from msgspec.structs import replace

from podgpu.insight import conclude, conclude_node
from podgpu.model import (
    Balance,
    Booking,
    Card,
    Claim,
    ClusterNode,
    ContainerRef,
    Gpu,
    Reading,
    Rest,
    Snapshot,
    Tenant,
)
from podgpu.views.json import encode
from tests.tree import SETTINGS

GIB = 1 << 30


def node_name(number: int) -> str:
    return f"node-{number:04}"


def card(uuid: str = "GPU-1", *tenants: Tenant, **facts: object) -> Card:
    """A card that is half busy, all of it by its tenants or by nobody."""
    readings = (
        Reading("memory_total_bytes", 100.0 * GIB),
        Reading("memory_used_bytes", 40.0 * GIB),
        Reading("power_watts", 300.0),
    )
    whole = Card(
        gpu=Gpu(uuid=uuid, index=0, model="NVIDIA H200", multiprocessors=132),
        readings=readings,
        tenants=tenants,
        rest=(Rest(reason="overhead", memory_bytes=GIB),),
        balance=Balance(busy_ratio=0.5, memory_bytes=40 * GIB),
    )
    return replace(whole, **facts)


def tenant(pod: str, share: float | None = 1.0, *, idle: bool | None = False, **facts: object) -> Tenant:
    """`pod` is `namespace/name`."""
    namespace, name = pod.split("/")
    ref = ContainerRef(namespace, name, "main", f"uid-{name}")
    claim = Claim(gpu="GPU-1", container=ref, resource="nvidia.com/gpu", device_id="GPU-1", share=share or 1.0)
    used = (0.0, 0) if idle else (0.5, 39 * GIB)
    booking = Booking(method="exclusive", allocated_ratio=share, sm_ratio=used[0], memory_bytes=used[1])
    made = Tenant(container=ref, claims=(claim,), booking=booking, idle=idle, held_since=1_600_000_000.0)
    active = replace(booking, last_active_at=None if idle else 1_700_000_000.0)
    return replace(replace(made, booking=active), **facts)


def snapshot(name: str, *cards: Card, version: int = 0) -> Snapshot:
    return Snapshot(
        node=name,
        taken_at=1_700_000_000.0 + version,
        interval_seconds=5.0,
        version="1.0",
        cards=cards or (card(),),
    )


def document(number: int, version: int = 0) -> bytes:
    return encode(conclude(snapshot(node_name(number), version=version), SETTINGS))


def fresh(name: str, *cards: Card, **facts: object) -> ClusterNode:
    read = snapshot(name, *cards)
    node = ClusterNode(name=name, state="fresh", origin="agent", snapshot=read, model="NVIDIA H200")
    return conclude_node(replace(node, **facts), SETTINGS)
