"""Reads all nodes from a store, as they were at their last scrape."""

import asyncio
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise

from msgspec import Struct

from podgpu.catalog.row import Scope
from podgpu.cluster.store.answer import Point, Series
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.fault import Notice
from podgpu.cluster.store.labels import own
from podgpu.cluster.store.rows import NodeRows
from podgpu.cluster.store.tree import snapshot
from podgpu.model import Snapshot
from podgpu.model.document import NUMBERS

# Far enough to see two scrapes of nearly every configuration; a store itself forgets a series after five minutes.
RECENT = "[5m]"
STALE_SCRAPES = 3
_SAME_SCRAPE_SECONDS = 0.5
_OWN = frozenset(Scope.CONTAINER.labels)
# What snapshots of many nodes are shown by. The rest of a hundred families would only cost time.
WANTED = re.compile(
    "|".join(
        (
            "podgpu_(build_info|interval_seconds|watched_since_timestamp_seconds|source_.+|pod_info)",
            "podgpu_gpu_(up|info|problem|processes|busy_ratio|booked_.+|utilization_ratio|power_watts|power_limit_watts)",
            "podgpu_gpu_(memory_(total|used)_bytes|temperature_celsius|(sm|tensor|dram)_active_ratio)",
            "podgpu_gpu_(recovery_action|xid_last_.+|row_remap_(pending|failed)|retired_pages_pending)",
            "podgpu_mig_(memory_(total|used)_bytes|(sm|tensor|dram)_active_ratio)",
            "podgpu_container_(info|.+_ratio|.+_bytes|power_watts|processes|.+_timestamp_seconds)",
            "podgpu_container_(busy_seconds|energy_joules|allocated_seconds)_total",
            "podgpu_(unattributed|ended)_.+",
        )
    )
)


class NodeReading(Struct, frozen=True):
    """A node by its last scrape. `seconds` is how long ago that was, `scrape_seconds` the time between two."""

    snapshot: Snapshot
    scraped_at: float
    seconds: float
    scrape_seconds: float

    @property
    def is_stale(self) -> bool:
        """Whether it is so old that it is not shown as now."""
        return self.seconds > STALE_SCRAPES * max(self.scrape_seconds, self.snapshot.interval_seconds)


class StoreReading(Struct, frozen=True):
    """Nodes by name, and what the store said beside its answers.

    `silent` are those that were scraped within the last minutes and are no longer, and for how many seconds. `broken`
    are those of whose numbers no snapshot can be made, and why.
    """

    nodes: dict[str, NodeReading]
    silent: dict[str, float] = {}
    broken: dict[str, str] = {}
    notices: tuple[Notice, ...] = ()


class _Scrape(Struct, frozen=True):
    """The last scrape of a node: by whom, when, and what it says about its own time."""

    by: dict[str, str]
    at: float
    taken_at: float
    interval: float


async def read(store: Store, now: float) -> StoreReading:
    """Raises StoreFault."""
    store.notices.clear()
    clock = store.select("podgpu_snapshot_timestamp_seconds")
    chosen = store.select("", f'__name__=~"{WANTED.pattern}"')
    clocks, cards, tenants, points, events, errors = await asyncio.gather(
        store.series(f"{clock}{RECENT}", now),
        store.points(f"timestamp({store.select('podgpu_gpu_up')})", now),
        store.points(f"timestamp({store.select('podgpu_container_info')})", now),
        store.points(chosen, now),
        # A card has dozens of these, of which nearly all are 0.
        store.points(f"{store.select('podgpu_gpu_clock_event')} > 0", now),
        store.points(f"{store.select('podgpu_gpu_ecc_errors_total')} > 0", now),
    )
    scrapes, doubtful = _last_scrapes(clocks)
    gone = _gone(scrapes, [*cards, *tenants])
    rows = await asyncio.to_thread(_sorted, scrapes, gone, [*points, *events, *errors])
    nodes: dict[str, NodeReading] = {}
    broken = {node: "its clock shows no time" for node in _without_time(clocks) if node not in scrapes}
    for node, one in rows.items():
        try:
            nodes[node] = _node(one, scrapes[node], now)
        except Exception as error:  # whatever a store has of one node, the others are shown
            broken[node] = str(error) or repr(error)
    silent = {node: max(now - one.at, 0.0) for node, one in scrapes.items() if node not in rows}
    return StoreReading(nodes, silent, broken, tuple(sorted({*store.notices, *doubtful})))


def _node(rows: NodeRows, scrape: _Scrape, now: float) -> NodeReading:
    made = snapshot(rows, taken_at=scrape.taken_at, interval=scrape.interval)
    NUMBERS.check(made)
    return NodeReading(made, scrape.at, max(now - scrape.at, 0.0), scrape.interval)


def _last_scrapes(clocks: Iterable[Series]) -> tuple[dict[str, _Scrape], list[Notice]]:
    """Find the last scrape of each node. Where two servers scrape it, or its agent moved, the newest counts alone.

    Two nodes of one name in two clusters cannot be told apart: neither is shown.
    """
    found: dict[str, list[_Scrape]] = {}
    for one in clocks:
        node = own(one.labels).get("node", "")
        if node and one.samples:
            by = {name: value for name, value in one.labels.items() if name != "__name__"}
            at, taken_at = one.samples[-1]
            found.setdefault(node, []).append(
                _Scrape(by, at, taken_at, _interval([when for when, _ in one.samples]))
            )
    clusters = {node: sorted({one.by.get("cluster", "") for one in some}) for node, some in found.items()}
    notices = [
        Notice(
            "store_ambiguous", f"node {node} is in clusters {', '.join(names)}: give --prometheus.selector"
        )
        for node, names in clusters.items()
        if len(names) > 1
    ]
    last = {
        node: max(some, key=lambda one: one.at) for node, some in found.items() if len(clusters[node]) == 1
    }
    return last, notices


def _without_time(clocks: Iterable[Series]) -> set[str]:
    return {own(one.labels).get("node", "") for one in clocks if one.unsound and not one.samples} - {""}


def _interval(times: list[float]) -> float:
    """The usual time between scrapes, so that a missed one changes nothing."""
    gaps = sorted(after - before for before, after in pairwise(times))
    return gaps[len(gaps) // 2] if gaps else 0.0


_Thing = tuple[str, ...]


def _thing(labels: Mapping[str, str]) -> _Thing:
    """A card, or a container on it."""
    return tuple(labels.get(name, "") for name in ("node", "uuid", "mig", "namespace", "pod", "container"))


def _gone(scrapes: Mapping[str, _Scrape], seen_at: Iterable[Point]) -> set[_Thing]:
    """Return cards and containers that the last scrape did not have.

    A store that scrapes knows this by itself. One that is written to may show them for five minutes more.
    """
    last: dict[_Thing, float] = {}
    for point in seen_at:
        thing = _thing(own(point.labels))
        last[thing] = max(point.value, last.get(thing, 0.0))
    return {
        thing
        for thing, at in last.items()
        if thing[0] in scrapes and at < scrapes[thing[0]].at - _SAME_SCRAPE_SECONDS
    }


def _sorted(
    scrapes: Mapping[str, _Scrape], gone: set[_Thing], points: Iterable[Point]
) -> dict[str, NodeRows]:
    found: dict[str, NodeRows] = {}
    for point in points:
        labels = own(point.labels)
        scrape = scrapes.get(labels.get("node", ""))
        if scrape is None or not _is_of(point.labels, scrape) or _is_gone(labels, gone):
            continue
        node = labels["node"]
        rows = found.get(node) or found.setdefault(node, NodeRows(node))
        rows.add(labels.get("__name__", ""), labels, point.value)
    return found


def _is_of(labels: Mapping[str, str], scrape: _Scrape) -> bool:
    """Whether it comes from this scrape. Labels of podgpu's own may hide those of whoever scraped it."""
    return all(labels.get(name) == value for name, value in scrape.by.items() if name not in _OWN)


def _is_gone(labels: Mapping[str, str], gone: set[_Thing]) -> bool:
    if "uuid" not in labels:
        return False
    thing = _thing(labels)
    return thing in gone or (thing[0], thing[1], "", "", "", "") in gone
