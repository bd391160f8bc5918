"""What the rows of a cluster need of a node: less than half of it. Rows of the past need nodes for nothing else."""

from msgspec.structs import replace

from podgpu.model import Card, ClusterNode, Instance, Pod, Reading, Rest, Snapshot, Tenant

_READINGS = frozenset({"memory_total_bytes", "memory_used_bytes", "power_limit_watts", "temperature_celsius"})


def needed_for_rows(node: ClusterNode) -> ClusterNode:
    """Return the node without processes, evidence, counters and what else no row shows or adds up."""
    snapshot = _snapshot(node.snapshot) if node.snapshot else None
    return replace(node, snapshot=snapshot, insight=None, written=None, allocatable={})


def _snapshot(snapshot: Snapshot) -> Snapshot:
    return replace(
        snapshot,
        cards=tuple(map(_card, snapshot.cards)),
        pods=tuple(map(_pod, snapshot.pods)),
        guests=None,
        unclaimed=(),
        sharing=(),
        errors=(),
        insight=None,
    )


def _pod(pod: Pod) -> Pod:
    return Pod(namespace=pod.namespace, name=pod.name, uid=pod.uid, labels=pod.labels)


def _card(card: Card) -> Card:
    return Card(
        gpu=card.gpu,
        fault=card.fault,
        readings=_readings(card.readings),
        instances=tuple(map(_instance, card.instances)),
        tenants=tuple(map(_tenant, card.tenants)),
        ended=card.ended,
        rest=tuple([Rest(reason=rest.reason, use=rest.use) for rest in card.rest]),
        balance=card.balance,
        use=card.use,
        problems=card.problems,
        severity=card.severity,
    )


def _readings(readings: tuple[Reading, ...]) -> tuple[Reading, ...]:
    return tuple([reading for reading in readings if reading.metric in _READINGS])


def _instance(instance: Instance) -> Instance:
    return replace(instance, readings=_readings(instance.readings))


def _tenant(tenant: Tenant) -> Tenant:
    return replace(
        tenant, processes=(), vgpu=None, booking=replace(tenant.booking, band=None, sampling=None), unsettled=None
    )
