"""The page of an agent, taken apart."""

from dataclasses import dataclass, field

from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as plain_text

Labels = tuple[tuple[str, str], ...]
Series = tuple[str, Labels]


@dataclass(frozen=True)
class Page:
    samples: tuple[tuple[Series, float], ...] = ()
    by_name: dict[str, list[tuple[dict[str, str], float]]] = field(default_factory=dict)

    def values(self, name: str, **labels: str) -> list[float]:
        return [value for found, value in self.by_name.get(name, ()) if labels.items() <= found.items()]

    def value(self, name: str, **labels: str) -> float | None:
        """Return the one sample with these labels, or None if there is none."""
        found = self.values(name, **labels)
        assert len(found) < 2, f"{name} {labels} is ambiguous"
        return found[0] if found else None

    def total(self, name: str, **labels: str) -> float:
        return sum(self.values(name, **labels))

    def errors(self, source: str, reason: str) -> float:
        return self.total("podgpu_errors_total", source=source, reason=reason)

    @property
    def counters(self) -> dict[Series, float]:
        return {series: value for series, value in self.samples if series[0].endswith("_total")}


def parsed(text: str, *, strictly: bool = False) -> Page:
    """Read a page in the format of Prometheus, or strictly: as OpenMetrics."""
    samples = []
    by_name: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in (open_metrics if strictly else plain_text)(text):
        for sample in family.samples:
            samples.append(((sample.name, tuple(sorted(sample.labels.items()))), sample.value))
            by_name.setdefault(sample.name, []).append((sample.labels, sample.value))
    return Page(tuple(samples), by_name)
