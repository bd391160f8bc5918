"""A decoded OTLP request as a flat map."""

from collections.abc import Iterable

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, NumberDataPoint

Points = dict[tuple[str, frozenset[tuple[str, str]]], float]


def attributes(pairs: Iterable[KeyValue]) -> dict[str, str]:
    found = {pair.key: pair.value.string_value for pair in pairs}
    assert len(found) == len(list(pairs)), "an attribute is there twice"
    return found


def metrics_of(request: ExportMetricsServiceRequest) -> dict[str, Metric]:
    (resource,) = request.resource_metrics
    (scope,) = resource.scope_metrics
    found = {metric.name: metric for metric in scope.metrics}
    assert len(found) == len(scope.metrics), "a metric is there twice"
    return found


def data_points(metric: Metric) -> list[NumberDataPoint]:
    return list(metric.sum.data_points if metric.HasField("sum") else metric.gauge.data_points)


def points_of(request: ExportMetricsServiceRequest) -> Points:
    """Name and attributes → value. No point may be there twice."""
    found: Points = {}
    for name, metric in metrics_of(request).items():
        for point in data_points(metric):
            key = name, frozenset(attributes(point.attributes).items())
            assert key not in found, key
            found[key] = point.as_double
    return found
