"""Reads a page of Prometheus text into samples, by Prometheus' own parser for Python."""

from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True)
class Samples:
    by_name: dict[str, list[tuple[dict[str, str], float]]]

    @classmethod
    def read(cls, page: str) -> "Samples":
        found: dict[str, list[tuple[dict[str, str], float]]] = {}
        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                found.setdefault(sample.name, []).append((sample.labels, sample.value))
        return cls(found)

    def by(self, name: str, *labels: str) -> dict[tuple[str, ...], float]:
        """The values of a metric, by some of its labels."""
        return {tuple(given.get(each, "") for each in labels): value for given, value in self.by_name.get(name, ())}
