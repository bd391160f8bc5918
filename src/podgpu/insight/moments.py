"""What a timeline and charts show: a snapshot or a cluster in a few numbers, a card in a dozen, a pod in three."""

from collections.abc import Iterable, Iterator, Mapping

from podgpu.catalog.xids import UNKNOWN, XIDS
from podgpu.insight.card_problems import throttle_causes
from podgpu.insight.sums import memory_used, seen_gpus
from podgpu.insight.tenants import reading
from podgpu.model import Card, Cluster, ContainerRef, Insight, Instance, Moment, Snapshot, XidMark

RECENT_SECONDS = 720.0  # an XID is noted in a few moments, however seldom they are kept, so that none is lost
# Of a card and of a MIG instance, each by the name of its reading.
_READINGS = (
    "temperature_celsius",
    "clock_hertz",
    "sm_active_ratio",
    "tensor_active_ratio",
    "dram_active_ratio",
    "pcie_transmit_bytes_per_second",
    "pcie_receive_bytes_per_second",
    "nvlink_transmit_bytes_per_second",
    "nvlink_receive_bytes_per_second",
)
_CLOCK = ("sm",)


def moment_of(snapshot: Snapshot) -> Moment:
    return _moment(snapshot.taken_at, snapshot.insight, (snapshot,))


def moment_of_cluster(cluster: Cluster) -> Moment:
    snapshots = (node.snapshot for node in cluster.nodes if node.snapshot and node.state == "fresh")
    return _moment(cluster.taken_at, cluster.insight, snapshots)


def _moment(at: float, insight: Insight | None, snapshots: Iterable[Snapshot]) -> Moment:
    if insight is None:
        return Moment(at)
    sums, read = insight.sums, list(snapshots)
    return Moment(
        at=at,
        gpus=sums.gpus or 0,
        seen_gpus=seen_gpus(sums),
        busy_gpus=sums.busy_gpus,
        namespaces={group.name: group.sums.busy_gpus for group in insight.namespaces if group.sums.busy_gpus},
        throttled_gpus=sum(bool(throttle_causes(card)) for snapshot in read for card in snapshot.cards),
        xids=tuple(mark for snapshot in read for mark in _xids(snapshot, at - RECENT_SECONDS)),
    )


def _xids(snapshot: Snapshot, after: float) -> Iterator[XidMark]:
    for card in snapshot.cards:
        raised = reading(card.readings, "xid_last_timestamp_seconds")
        if raised is None or raised <= after:
            continue
        code = reading(card.readings, "xid_last_code")
        if code is not None:
            severity = XIDS.get(int(code), UNKNOWN).severity
            yield XidMark(raised, int(code), snapshot.node, card.gpu.index, card.gpu.uuid, severity)


def charted(cards: Iterable[Card], uuid: str) -> Mapping[str, float | None]:
    """Return the main numbers of a card or a MIG instance, by name; nothing if it is on none of the cards.

    What is unknown is None.
    """
    for card in cards:
        if card.gpu.uuid == uuid:
            return _of_card(card)
        for instance in card.instances:
            if instance.mig.uuid == uuid:
                return _of_instance(instance)
    return {}


def _of_card(card: Card) -> Mapping[str, float | None]:
    use = card.use
    return {
        "busy_ratio": use.ratio if use else None,
        "memory_used_bytes": memory_used(card),
        "power_watts": use.watts if use else None,
        **_readings(card),
        "throttled": float(bool(throttle_causes(card))) if card.fault is None else None,
    }


def _of_instance(instance: Instance) -> Mapping[str, float | None]:
    return {"memory_used_bytes": reading(instance.readings, "memory_used_bytes"), **_readings(instance)}


def _readings(device: Card | Instance) -> Mapping[str, float | None]:
    clocks = [found for found in device.readings if found.labels == _CLOCK]
    return {name: reading(clocks if name == "clock_hertz" else device.readings, name) for name in _READINGS}


def pod_id(container: ContainerRef) -> str:
    """Return `NAMESPACE/POD`, or the name of what runs outside Kubernetes."""
    is_pod = container.namespace or container.pod
    return f"{container.namespace}/{container.pod}" if is_pod else container.container


def pod_use(cards: Iterable[Card], pod: str) -> Mapping[str, float | None]:
    """Add up what is known of a pod on these cards. What is known on none of them is None."""
    total: dict[str, float | None] = {"busy": None, "memory": None, "watts": None}
    for card in cards:
        for tenant in card.tenants:
            if pod_id(tenant.container) != pod:
                continue
            use = tenant.use
            values = (use.ratio if use else None, tenant.booking.memory_bytes, use.watts if use else None)
            for name, value in zip(total, values, strict=True):
                if value is not None:
                    total[name] = (total[name] or 0.0) + value
    return total
