"""Every metric that a query may name, with its labels: the catalog's, what the rules record, and a few of others."""

import re
from collections.abc import Iterator, Mapping

from podgpu import catalog
from podgpu.catalog.row import Metric, Scope
from tests.deploy.watching.promql import Selector, grouped_labels, made_labels, matched_labels, selectors
from tests.deploy.watching.rulebook import RECORDINGS

_CARD = {"node", "gpu", "uuid"}
_CONTAINER = {*_CARD, "mig", "namespace", "pod", "container"}
_SCOPES: Mapping[Scope, set[str]] = {
    Scope.AGENT: {"node"},
    Scope.CLUSTER: set(),
    Scope.CLUSTER_NODE: {"node"},
    Scope.GPU: _CARD,
    Scope.MIG: {*_CARD, "mig", "profile"},
    Scope.UNATTRIBUTED: _CARD,
    Scope.ENDED: _CARD,
    Scope.CONTAINER: _CONTAINER,
    Scope.PROCESS: _CONTAINER,
    Scope.WORKLOAD: {"namespace", "workload_kind", "workload_name", "container", "model"},
}

# What Prometheus adds to every series. A cluster label comes from whoever collects for several clusters, and the
# exported one is what becomes of podgpu's own where a scrape job does not keep it.
_TARGET = {"job", "instance", "cluster", "exported_namespace"}

# Metrics of Prometheus itself and of kube-state-metrics.
FOREIGN: Mapping[str, set[str]] = {
    "up": set(),
    "scrape_duration_seconds": set(),
    "ALERTS_FOR_STATE": {"alertname", "severity", "node", "gpu", "namespace", "pod"},
    "ALERTS": {"alertname", "alertstate", "severity", "node", "gpu", "namespace", "pod"},
    "kube_pod_status_phase": {"namespace", "pod", "uid", "phase"},
    "kube_pod_container_resource_requests": {
        "namespace",
        "pod",
        "uid",
        "container",
        "node",
        "resource",
        "unit",
    },
    "kube_node_status_allocatable": {"node", "resource", "unit"},
}

_ROWS: Mapping[str, tuple[Metric, ...]] = catalog.families()

LABELS: Mapping[str, set[str]] = {
    **{name: {*_SCOPES[rows[0].scope], *rows[0].label_names} for name, rows in _ROWS.items()},
    **{recording.name: grouped_labels(recording.expr) | recording.labels for recording in RECORDINGS},
    **FOREIGN,
}


def mistakes(expression: str) -> list[str]:
    """Say what is wrong with the names in an expression."""
    found = selectors(expression)
    known = (
        {label for selector in found for label in LABELS.get(selector.metric, ())} | _TARGET | made_labels(expression)
    )
    foreign = (grouped_labels(expression) | matched_labels(expression)) - known
    return [
        *(f"no series of it has the label {label}" for label in sorted(foreign)),
        *(mistake for selector in found for mistake in _of_selector(selector)),
    ]


def _of_selector(selector: Selector) -> Iterator[str]:
    if selector.metric not in LABELS:
        yield f"there is no metric {selector.metric}"
        return
    for matcher in selector.matchers:
        if matcher.label not in LABELS[selector.metric] | _TARGET:
            yield f"{selector.metric} has no label {matcher.label}"
        values = _fixed_values(selector.metric, matcher.label)
        wanted = matcher.value.split("|") if matcher.is_regex else [matcher.value]
        if values:
            yield from (
                f"no {matcher.label} of {selector.metric} is {word}" for word in wanted if not _any(word, values)
            )


def _fixed_values(metric: str, label: str) -> set[str]:
    """The values that the catalog gives a label, nothing where they come with the reading."""
    return {value for row in _ROWS.get(metric, ()) for name, value in row.labels if name == label}


def _any(pattern: str, values: set[str]) -> bool:
    return any(re.fullmatch(pattern, value) for value in values)
