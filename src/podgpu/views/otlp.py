"""The snapshot as the body of an OTLP export request, in OpenTelemetry's names. Needs the optional dependency.

A native name loses its unit and `_total`, which are fields of their own in OTLP: `podgpu_container_energy_joules_total`
becomes `podgpu.container.energy` in J. A collector that writes it for Prometheus restores the native name. Where two
names differ in nothing else, both keep the unit. Containers are distinguished by the UID of their pod, and have their
workload as attributes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1 import metrics_pb2 as proto

from podgpu import catalog
from podgpu.catalog.row import Kind, Metric, Scope
from podgpu.model import Card, Snapshot, Tenant, Workload
from podgpu.model.kube import grouped
from podgpu.views import bookings, native
from podgpu.views.series import Family, Key, Labels, fit

UNITS = {
    "bytes": "By",
    "bytes_per_second": "By/s",
    "celsius": "Cel",
    "hertz": "Hz",
    "joules": "J",
    "ratio": "1",
    "seconds": "s",
    "watts": "W",
}
_ATTRIBUTES = {
    "node": "k8s.node.name",
    "uuid": "hw.id",
    "gpu": "hw.name",
    "namespace": "k8s.namespace.name",
    "pod": "k8s.pod.name",
    "pod_uid": "k8s.pod.uid",
    "container": "k8s.container.name",
    "mig": "podgpu.mig.id",
}
_WORKLOADS = frozenset(
    {"CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}
)
_ROWS = catalog.families()
_CONTAINER = {name: rows[0] for name, rows in _ROWS.items() if rows[0].scope is Scope.CONTAINER}
_CUMULATIVE = proto.AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
_NANOSECONDS = 1_000_000_000


def encode(snapshot: Snapshot, resource: Mapping[str, str], *, started_at: float, series_limit: int) -> bytes:
    """Write the snapshot. Counters are cumulative since `started_at`. Beyond the limit, less important series go."""
    request = service.ExportMetricsServiceRequest()
    of_agent = request.resource_metrics.add()
    of_agent.resource.attributes.extend(_pairs({**_about(snapshot), **resource}).values())
    scope = of_agent.scope_metrics.add()
    scope.scope.name, scope.scope.version = "podgpu", snapshot.version
    kept, _ = fit(families(snapshot), series_limit)
    _Metrics(scope, started_at, snapshot.taken_at).add(kept)
    return request.SerializeToString()


def rejection(answer: bytes) -> str:
    """Read which series a collector rejected although it took the request; empty if it took all."""
    try:
        partial = service.ExportMetricsServiceResponse.FromString(answer).partial_success
    except DecodeError:
        return ""  # a text of some kind; the status says that the request was taken
    rejected = partial.rejected_data_points
    return f"{rejected} series rejected: {partial.error_message}" if rejected else ""


def families(snapshot: Snapshot) -> list[Family]:
    """The native families; those of containers have more attributes. Old names are for pages alone."""
    current = [family for family in native.families(snapshot, {}) if family.name in _ROWS]
    plain = [family for family in current if family.name not in _CONTAINER]
    return [*plain, *_containers(snapshot)]


def own_name(row: Metric) -> str:
    """Write `podgpu.gpu.fan_speed` for `podgpu_gpu_fan_speed_ratio`."""
    short, long = _names(row)
    return short if _SHORT[short] == 1 else long


def unit(row: Metric) -> str:
    return UNITS.get(row.base_unit, "")


def attributes(labels: Mapping[str, str]) -> dict[str, str]:
    """Translate labels. Empty ones are left out."""
    return {
        _ATTRIBUTES.get(name, name): f"GPU {value}" if name == "gpu" else value
        for name, value in labels.items()
        if value
    }


def _names(row: Metric) -> tuple[str, str]:
    """Return the name without the unit, and with it."""
    prefix, name = row.scope.prefix.replace("_", "."), row.name.removesuffix("_total")
    return prefix + name.removesuffix(f"_{row.base_unit}"), prefix + name


_SHORT = Counter(_names(rows[0])[0] for rows in _ROWS.values())


def _about(snapshot: Snapshot) -> dict[str, str]:
    about = {
        "service.name": "podgpu",
        "service.version": snapshot.version,
        "service.instance.id": snapshot.node,
        "k8s.node.name": snapshot.node,
    }
    return {**about, "podgpu.demo": "true"} if snapshot.demo else about


def _containers(snapshot: Snapshot) -> list[Family]:
    found = {name: Family(name, row.kind, row.help, row.worth) for name, row in _CONTAINER.items()}
    for card in snapshot.cards:
        containers = list(_tenants(snapshot.node, card))
        shared = bookings.SHARED if sum(bool(live) for _, live, _ in containers) > 1 else ()
        for subject, live, tenants in containers:
            # Without a balance, nothing was ever booked.
            readings = [*bookings.counters(tenants, card.ability)] if card.balance else []
            if live:
                readings += bookings.gauges(live) if card.fault is None else bookings.claimed(live, card)
                readings += shared
            for reading in readings:
                name = Scope.CONTAINER.prefix + reading.metric
                own = Labels(_CONTAINER[name].label_names, reading.labels)
                found[name].put(reading.value, *((subject, own) if own.names else (subject,)))
    return [family for family in found.values() if family.samples]


def _tenants(node: str, card: Card) -> Iterator[tuple[Labels, list[Tenant], list[Tenant]]]:
    """Yield each container on the card: its attributes, its tenants there now, and the same with former ones."""
    containers = grouped((*card.tenants, *card.ended), lambda tenant: (tenant.mig, tenant.container))
    live = set(map(id, card.tenants))
    for (mig, ref), tenants in containers.items():
        place = (node, str(card.gpu.index), card.gpu.uuid, mig, ref.namespace, ref.pod, ref.container)
        workload = next((tenant.workload for tenant in tenants if tenant.workload), None)
        pairs = dict(zip(Scope.CONTAINER.labels, place, strict=True))
        subject = Labels.of({**pairs, "pod_uid": ref.pod_uid, **_workload_attributes(workload)})
        yield subject, [tenant for tenant in tenants if id(tenant) in live], tenants


def _workload_attributes(workload: Workload | None) -> dict[str, str]:
    """Name a workload by OpenTelemetry's conventions where they know its kind. A bare pod needs no second name."""
    if workload is None or workload.kind == "Pod":
        return {}
    if workload.kind in _WORKLOADS:
        return {f"k8s.{workload.kind.lower()}.name": workload.name}
    return {"podgpu.workload.kind": workload.kind, "podgpu.workload.name": workload.name}


def _pairs(pairs: Mapping[str, str]) -> dict[str, KeyValue]:
    return {name: KeyValue(key=name, value=AnyValue(string_value=value)) for name, value in pairs.items()}


class _Metrics:
    """Metrics being filled. Rows that share a name of the conventions share a metric."""

    def __init__(self, scope: proto.ScopeMetrics, started_at: float, taken_at: float) -> None:
        self._scope = scope
        self._started = int(started_at * _NANOSECONDS)
        self._taken = int(taken_at * _NANOSECONDS)
        self._by_name: dict[str, proto.Metric] = {}
        self._translated: dict[Labels, dict[str, KeyValue]] = {}

    def add(self, filled: Iterable[Family]) -> None:
        for family in filled:
            by_labels = {row.label_values: row for row in _ROWS[family.name]}
            first = _ROWS[family.name][0]
            for key, value in family.samples.items():
                row = by_labels.get(key[1].values, first) if len(key) > 1 else first
                if isfinite(value):
                    self._add(row, key, value)

    def _add(self, row: Metric, key: Key, value: float) -> None:
        # MIG instances have no name of the conventions: they would count twice.
        if row.otel and row.scope is Scope.GPU:
            up_down = row.otel.up_down
            metric = self._metric(row.otel.name, row, row.otel.unit or unit(row), up_down=up_down)
            facts = {**self._attributes(key[0]), **_pairs(dict(row.otel.attributes))}
        else:
            metric = self._metric(own_name(row), row, unit(row))
            # A container's info repeats the pod's UID, which is among the subject's attributes.
            facts = {name: pair for labels in key for name, pair in self._attributes(labels).items()}
        if metric.HasField("sum"):
            point = metric.sum.data_points.add(start_time_unix_nano=self._started)
        else:
            point = metric.gauge.data_points.add()
        point.time_unix_nano = self._taken
        point.as_double = value
        point.attributes.extend(facts.values())

    def _metric(self, name: str, row: Metric, unit: str, *, up_down: bool = False) -> proto.Metric:
        metric = self._by_name.get(name)
        if metric is None:
            metric = self._by_name[name] = self._scope.metrics.add(name=name, unit=unit, description=row.help)
            if row.kind is Kind.COUNTER or up_down:
                metric.sum.aggregation_temporality = _CUMULATIVE
                metric.sum.is_monotonic = row.kind is Kind.COUNTER
        return metric

    def _attributes(self, labels: Labels) -> dict[str, KeyValue]:
        found = self._translated.get(labels)
        if found is None:
            found = self._translated[labels] = _pairs(attributes(labels.pairs()))
        return found
