"""By what a report is grouped."""

import re
from collections.abc import Callable, Sequence

from msgspec import Struct

from podgpu.cluster.report.counters import CounterKey

# Columns of each grouping, and the labels of podgpu_pod_info that it needs. Any other word is a label of pods.
_KNOWN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "namespace": (("namespace",), ()),
    "workload": (("namespace", "workload_kind", "workload_name"), ("workload_kind", "workload_name")),
    "pod": (("namespace", "pod"), ()),
    "node": (("node",), ()),
    "model": (("model",), ()),
    "cluster": (("cluster",), ()),
}


def as_label(name: str) -> str:
    """Write a name of Kubernetes as labels of Prometheus are written."""
    return re.sub("[^a-zA-Z0-9_]", "_", name)


class Grouping(Struct, frozen=True):
    """`by` is a known word, or the key of a pod label. With a namespace, only what is in it is shown."""

    by: str
    namespace: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return _KNOWN[self.by][0] if self.by in _KNOWN else (self.label,)

    @property
    def facts(self) -> tuple[str, ...]:
        return _KNOWN[self.by][1] if self.by in _KNOWN else (self.label,)

    @property
    def label(self) -> str:
        """The name that podgpu_pod_info gives to the pod label."""
        return f"label_{as_label(self.by)}"

    @property
    def is_known(self) -> bool:
        """Whether it is by one of podgpu's own words, and not by a label of pods."""
        return self.by in _KNOWN

    def has(self, counter: CounterKey) -> bool:
        return self.namespace in (None, counter.namespace)

    def of(self, counter: CounterKey, model: str, pods: Sequence[dict[str, str]]) -> tuple[str, ...]:
        """Return the values of the columns."""
        if self.by not in _KNOWN:
            return (_only(pods, self.label),)
        return tuple(_VALUES[name](counter, model, pods) for name in self.columns)


def _only(pods: Sequence[dict[str, str]], name: str) -> str:
    """Pods of one name may differ within a short time: then all values are shown, and nobody gets another's part."""
    return ", ".join(sorted({found for pod in pods if (found := pod.get(name, ""))}))


_VALUES: dict[str, Callable[[CounterKey, str, Sequence[dict[str, str]]], str]] = {
    "namespace": lambda counter, _model, _pods: counter.namespace,
    "pod": lambda counter, _model, _pods: counter.pod or counter.container,
    "node": lambda counter, _model, _pods: counter.card.node,
    "model": lambda _counter, model, _pods: model,
    "cluster": lambda counter, _model, _pods: counter.card.cluster,
    "workload_kind": lambda counter, _model, pods: _only(pods, "workload_kind") or ("Pod" if counter.pod else ""),
    "workload_name": lambda counter, _model, pods: _only(pods, "workload_name") or counter.pod or counter.container,
}
