"""Families as the body of an OTLP export request."""

from collections.abc import Iterable, Mapping
from math import isfinite

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    Metric,
    NumberDataPoint,
    ScopeMetrics,
)

from podgpu import catalog
from podgpu.catalog import row as catalog_row
from podgpu.catalog.row import Kind
from podgpu.model import Snapshot
from podgpu.views.otlp import names
from podgpu.views.otlp.series import families
from podgpu.views.series import Family, Key, Labels
from podgpu.views.series_filter import fit

_ROWS = catalog.families()
_CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
_NANOSECONDS = 1_000_000_000


def encode(snapshot: Snapshot, resource: Mapping[str, str], *, started_at: float, series_limit: int) -> bytes:
    """Write the snapshot. Counters are cumulative since `started_at`. Beyond the limit, less important series go."""
    request = ExportMetricsServiceRequest()
    of_agent = request.resource_metrics.add()
    of_agent.resource.attributes.extend(_pairs({**_about(snapshot), **resource}).values())
    scope = of_agent.scope_metrics.add()
    scope.scope.name, scope.scope.version = "podgpu", snapshot.version
    kept, _ = fit(families(snapshot), series_limit)
    _Metrics(scope, started_at, snapshot.taken_at).add(kept)
    return request.SerializeToString()


def complaint(answer: bytes) -> str:
    """Read what a collector that took the request did not take of it; nothing where it took all."""
    try:
        partial = ExportMetricsServiceResponse.FromString(answer).partial_success
    except DecodeError:
        return ""  # some answer in plain words; the status says that it was taken
    rejected = partial.rejected_data_points
    return f"{rejected} series rejected: {partial.error_message}" if rejected else ""


def _about(snapshot: Snapshot) -> dict[str, str]:
    about = {
        "service.name": "podgpu",
        "service.version": snapshot.version,
        "service.instance.id": snapshot.node,
        "k8s.node.name": snapshot.node,
    }
    return {**about, "podgpu.demo": "true"} if snapshot.demo else about


class _Metrics:
    """Metrics being filled. Rows that share a name of the conventions share a metric."""

    def __init__(self, scope: ScopeMetrics, started_at: float, taken_at: float) -> None:
        self._scope = scope
        self._started = int(started_at * _NANOSECONDS)
        self._taken = int(taken_at * _NANOSECONDS)
        self._by_name: dict[str, Metric] = {}
        self._translated: dict[Labels, dict[str, KeyValue]] = {}

    def add(self, filled: Iterable[Family]) -> None:
        for family in filled:
            by_labels = {row.label_values: row for row in _ROWS[family.name]}
            first = _ROWS[family.name][0]
            for key, value in family.samples.items():
                row = by_labels.get(key[1].values, first) if len(key) > 1 else first
                if isfinite(value):
                    self._add(row, key, value)

    def _add(self, row: catalog_row.Metric, key: Key, value: float) -> None:
        if row.otel and names.standard(row):
            metric = self._metric(row.otel.name, row, row.otel.unit or names.unit(row))
            facts = {**self._attributes(key[0]), **_pairs(dict(row.otel.attributes))}
        else:
            metric = self._metric(names.own_name(row), row, names.unit(row))
            # A container's info has the pod's UID of its own; the subject has it already.
            facts = {name: pair for labels in key for name, pair in self._attributes(labels).items()}
        point = self._point(metric)
        point.time_unix_nano = self._taken
        point.as_double = value
        point.attributes.extend(facts.values())

    def _metric(self, name: str, row: catalog_row.Metric, unit: str) -> Metric:
        metric = self._by_name.get(name)
        if metric is None:
            metric = self._by_name[name] = self._scope.metrics.add(name=name, unit=unit, description=row.help)
            if row.kind is Kind.COUNTER or (row.otel and row.otel.up_down and names.standard(row)):
                metric.sum.aggregation_temporality = _CUMULATIVE
                metric.sum.is_monotonic = row.kind is Kind.COUNTER
        return metric

    def _point(self, metric: Metric) -> NumberDataPoint:
        if not metric.HasField("sum"):
            return metric.gauge.data_points.add()
        return metric.sum.data_points.add(start_time_unix_nano=self._started)

    def _attributes(self, labels: Labels) -> dict[str, KeyValue]:
        found = self._translated.get(labels)
        if found is None:
            found = self._translated[labels] = _pairs(names.attributes(labels.pairs()))
        return found


def _pairs(attributes: Mapping[str, str]) -> dict[str, KeyValue]:
    return {
        name: KeyValue(key=name, value=AnyValue(string_value=value)) for name, value in attributes.items()
    }
