"""The queries of docs/operations.md, and what a run of the demo says to each."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.e2e.prometheus import Prometheus
from tests.e2e.recorder import Recorder
from tests.e2e.rig import eventually

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
HOUR = 3600

Snapshot = Any
Row = tuple[str, ...]
Rows = dict[Row, float]
# From a tenant to the labels that a query sums it up by.
Key = Callable[[Any], Row]


def documented() -> dict[str, str]:
    """Each query by its title, the comment in its first line."""
    blocks = re.findall(r"```promql\n# (.+)\n((?:.*\n)*?)```", PAGE.read_text())
    assert len(blocks) == PAGE.read_text().count("```promql")
    assert len(dict(blocks)) == len(blocks)
    return dict(blocks)


@dataclass(frozen=True)
class Run:
    """A Prometheus that has scraped the demo until `at`, and the first and last snapshot that it has seen."""

    scraper: Prometheus
    at: float
    first: Snapshot
    last: Snapshot
    teams: Mapping[Row, str]

    def rows(self, query: str, labels: Row) -> Rows:
        found = self.scraper.query(query)
        rows = {tuple(series.get(name, "") for name in labels): value for series, value in found}
        assert len(rows) == len(found), "these labels do not tell the rows apart"
        return rows

    def increase(self, counter: str, by: Key, unit: float) -> Rows:
        """How much a counter of bookings rose during the run, in units."""
        before, after = _summed(self.first, counter, by), _summed(self.last, counter, by)
        return {row: (total - before.get(row, 0.0)) / unit for row, total in after.items()}

    def now(self, gauge: str, by: Key) -> Rows:
        return _summed(self.last, gauge, by)

    def team(self, tenant: Any) -> Row:
        return (self.teams[pod(tenant)],)


def run(scraper: Prometheus, recorded: Recorder, node: str) -> Run:
    """Look back from a moment ago."""
    then = scraper.when("podgpu_snapshot_timestamp_seconds")
    ((_, first),) = then.query("min_over_time(podgpu_snapshot_timestamp_seconds[1d])")
    ((_, last),) = then.query("podgpu_snapshot_timestamp_seconds")
    begun, ended = (eventually(partial(recorded.at, node, taken)) for taken in (first, last))
    assert begun and ended
    teams: dict[Row, str] = {(pod["namespace"], pod["name"]): pod["labels"]["team"] for pod in ended["pods"]}
    assert then.at
    return Run(then, then.at, begun, ended, teams)


def tenants(snapshot: Snapshot) -> Iterator[Any]:
    for card in snapshot["cards"]:
        for tenant in card["tenants"]:
            yield tenant | {"card": card}


def namespace(tenant: Any) -> Row:
    return (tenant["container"]["namespace"],)


def pod(tenant: Any) -> Row:
    return tenant["container"]["namespace"], tenant["container"]["pod"]


def workload(tenant: Any) -> Row:
    return *namespace(tenant), tenant["workload"]["kind"], tenant["workload"]["name"]


def card(tenant: Any) -> Row:
    return (tenant["card"]["gpu"]["uuid"],)


def _summed(snapshot: Snapshot, field: str, by: Key) -> Rows:
    sums: Rows = defaultdict(float)
    for tenant in tenants(snapshot):
        value = tenant["booking"].get(field)
        if value is not None:
            sums[by(tenant)] += value
    return dict(sums)
