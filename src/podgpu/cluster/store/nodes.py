"""Reads all nodes from a store, as they were at their last scrape."""

import asyncio
import re
import time
from collections.abc import Iterable, Mapping
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from podgpu.catalog.row import Scope
from podgpu.cluster.discovery import Discovered, NodeTarget
from podgpu.cluster.node_state import ReadFault
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.disputes import CLOCK, COUNTERS, RECENT, disputes, fault
from podgpu.cluster.store.response import EMPTY, NOTHING, DecodeBudget, Notice, Point, Series, StoreFault, own_labels
from podgpu.cluster.store.snapshot import NodeRows, snapshot
from podgpu.insight.idle import PlaceKey
from podgpu.model import Fault, PartStatus, Snapshot, Written
from podgpu.model.document import check_bounds

STALE_SCRAPES = 3
PART = "store"
SILENT = "not_scraped"
_NO_TIME = Fault(reason="implausible", detail="its clock shows no time")
_SAME_SCRAPE_SECONDS = 0.5
_CLOCK_SECONDS = 300.0  # by which an agent's clock may be behind that of the store
_OWN = frozenset(Scope.CONTAINER.labels)
# What the views of many nodes show. The rest of a hundred families would only cost time.
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


_COUNTER = re.compile(COUNTERS).fullmatch


class NodeReading(Struct, frozen=True):
    """A node by its last scrape, and when that was."""

    snapshot: Snapshot
    scraped_at: float


class StoreReading(Struct, frozen=True):
    """Nodes by name, why others are not shown, and the store's warnings."""

    nodes: dict[str, NodeReading] = {}
    faults: dict[str, Fault] = {}
    notices: tuple[Notice, ...] = ()


class _Scrape(Struct, frozen=True):
    """The last scrape of a node: the scraper's labels, its time, and the time of the snapshot."""

    by: dict[str, str]
    at: float
    taken_at: float
    interval: float


async def read_nodes(store: Store, now: float, budget: DecodeBudget | None = None) -> StoreReading:
    """Raises StoreFault."""
    store.notices.clear()
    budget = budget or DecodeBudget()
    clock = store.select(CLOCK)
    chosen = store.select("", f'__name__=~"{WANTED.pattern}"')
    clocks, cards, tenants, points, events, errors = await asyncio.gather(
        store.series(f"{clock}{RECENT}", now, budget),
        store.points(f"timestamp({store.select('podgpu_gpu_up')})", now, budget),
        store.points(f"timestamp({store.select('podgpu_container_info')})", now, budget),
        store.points(chosen, now, budget),
        # A card has dozens of these, of which nearly all are 0.
        store.points(f"{store.select('podgpu_gpu_clock_event')} > 0", now, budget),
        store.points(f"{store.select('podgpu_gpu_ecc_errors_total')} > 0", now, budget),
    )
    scrapes, doubtful = _last_scrapes(clocks)
    disputed = await asyncio.to_thread(disputes, clocks, [each for each in points if _is_counter(each)])
    for node in disputed:
        scrapes.pop(node, None)
    gone = _gone(scrapes, [*cards, *tenants])
    rows = await asyncio.to_thread(_sorted, scrapes, gone, [*points, *events, *errors])
    found = {node: _node(rows.get(node), scrape, now) for node, scrape in scrapes.items()}
    nodes = {node: reading for node, reading in found.items() if isinstance(reading, NodeReading)}
    faults = dict.fromkeys(_without_time(clocks) - scrapes.keys(), _NO_TIME)
    faults |= {node: reading for node, reading in found.items() if isinstance(reading, Fault)}
    faults |= {node: fault(targets) for node, targets in disputed.items()}
    return StoreReading(nodes, faults, tuple(sorted({*store.notices, *doubtful})))


def _is_counter(point: Point) -> bool:
    return _COUNTER(point.labels.get("__name__", "")) is not None


def _node(rows: NodeRows | None, scrape: _Scrape, now: float) -> NodeReading | Fault:
    """What is too old is not shown as now."""
    seconds = max(now - scrape.at, 0.0)
    if rows is not None:
        try:
            made = snapshot(rows, taken_at=scrape.taken_at, interval=scrape.interval)
            check_bounds(made)
        except Exception as error:  # whatever the store holds of a node, the others are shown
            return Fault(reason="implausible", detail=str(error) or repr(error))
        if seconds <= STALE_SCRAPES * made.interval_seconds:
            behind = scrape.at - scrape.taken_at
            if behind > max(STALE_SCRAPES * made.interval_seconds, _CLOCK_SECONDS):
                return Fault(reason="old", detail=f"its last scrape shows what was {behind:.0f} s before")
            return NodeReading(made, scrape.at)
    return _not_scraped(seconds)


def _not_scraped(seconds: float) -> Fault:
    return Fault(reason=SILENT, detail=f"its last scrape was {seconds:.0f} s ago")


def _last_scrapes(clocks: Iterable[Series]) -> tuple[dict[str, _Scrape], list[Notice]]:
    """Find the last scrape of each node. Where two servers scrape it, or its agent moved, the newest counts alone.

    Two nodes of one name in two clusters cannot be distinguished: neither is shown.
    """
    found: dict[str, list[_Scrape]] = {}
    for clock in clocks:
        node = own_labels(clock.labels).get("node", "")
        if node and clock.samples:
            by = {name: value for name, value in clock.labels.items() if name != "__name__"}
            at, taken_at = clock.samples[-1]
            found.setdefault(node, []).append(_Scrape(by, at, taken_at, _interval([when for when, _ in clock.samples])))
    clusters = {node: sorted({scrape.by.get("cluster", "") for scrape in scrapes}) for node, scrapes in found.items()}
    notices = [
        Notice("store_ambiguous", f"node {node} is in clusters {', '.join(names)}: give --prometheus.selector")
        for node, names in clusters.items()
        if len(names) > 1
    ]
    last = {
        node: max(scrapes, key=lambda scrape: scrape.at) for node, scrapes in found.items() if len(clusters[node]) == 1
    }
    return last, notices


def _without_time(clocks: Iterable[Series]) -> set[str]:
    silent = (clock.labels for clock in clocks if clock.unsound and not clock.samples)
    return {own_labels(labels).get("node", "") for labels in silent} - {""}


def _interval(times: list[float]) -> float:
    """The usual time between scrapes, so that a missed one changes nothing."""
    gaps = sorted(after - before for before, after in pairwise(times))
    return gaps[len(gaps) // 2] if gaps else 0.0


def _gone(scrapes: Mapping[str, _Scrape], seen_at: Iterable[Point]) -> set[PlaceKey]:
    """Return cards and containers that the last scrape did not have.

    A store that scrapes drops them at once. After remote write, they may be shown for five minutes more.
    """
    last: dict[PlaceKey, float] = {}
    for point in seen_at:
        holder = PlaceKey.of(own_labels(point.labels))
        last[holder] = max(point.value, last.get(holder, 0.0))
    return {
        holder
        for holder, at in last.items()
        if holder.node in scrapes and at < scrapes[holder.node].at - _SAME_SCRAPE_SECONDS
    }


def _sorted(scrapes: Mapping[str, _Scrape], gone: set[PlaceKey], points: Iterable[Point]) -> dict[str, NodeRows]:
    found: dict[str, NodeRows] = {}
    for point in points:
        labels = own_labels(point.labels)
        scrape = scrapes.get(labels.get("node", ""))
        if scrape is None or not _is_of(point.labels, scrape) or _is_gone(labels, gone):
            continue
        node = labels["node"]
        rows = found.get(node) or found.setdefault(node, NodeRows(node))
        rows.add(labels.get("__name__", ""), labels, point.value)
    return found


def _is_of(labels: Mapping[str, str], scrape: _Scrape) -> bool:
    """Whether the series comes from this scrape. podgpu's own labels may hide those of the scraper."""
    return all(labels.get(name) == value for name, value in scrape.by.items() if name not in _OWN)


def _is_gone(labels: Mapping[str, str], gone: set[PlaceKey]) -> bool:
    if not gone or "uuid" not in labels:
        return False
    holder = PlaceKey.of(labels)
    return holder in gone or PlaceKey(holder.node, holder.uuid) in gone


class StoreDiscovery:
    """Keeps the nodes that it knows while the store does not answer."""

    def __init__(self, store: Store, url: str) -> None:
        self._store = store
        self._url = url
        self._last = StoreReading()
        self.fault: StoreFault | None = None

    async def find(self) -> Discovered:
        began = time.monotonic()
        try:
            found = await read_nodes(self._store, time.time())
        except StoreFault as fault:
            self.fault = fault
        else:
            self.fault = None
            last = self._last.nodes
            nodes = {name: _kept(last.get(name), node) for name, node in found.nodes.items()}
            self._last = replace(found, nodes=nodes)
        names = sorted({*self._last.nodes, *self._last.faults})
        targets = (NodeTarget(PART, (self._url,), name) for name in names)
        return Discovered(tuple(targets), (self._part(time.monotonic() - began),))

    def node(self, name: str) -> Snapshot:
        """Return the node's newest snapshot. Raises ReadFault."""
        if self.fault is not None:
            raise ReadFault("store_failed", f"{self.fault.reason}: {self.fault.detail}")
        found = self._last.nodes.get(name)
        if found is None:
            fault = self._last.faults.get(name) or _not_scraped(0.0)
            raise ReadFault(fault.reason, fault.detail)
        return found.snapshot

    def open_reader(self, target: NodeTarget) -> "StoreReader":
        return StoreReader(self, target.node)

    async def close(self) -> None:
        await self._store.close()

    def _part(self, seconds: float) -> PartStatus:
        """A store that warns that something may be missing is up, with that as its fault."""
        wrong: StoreFault | Notice | None = self.fault
        is_scraped = self._last.nodes or any(fault.reason == SILENT for fault in self._last.faults.values())
        if wrong is None and not is_scraped:
            wrong = Notice(EMPTY, NOTHING)
        elif wrong is None and self._last.notices:
            wrong = self._last.notices[0]
        fault = Fault(reason=wrong.reason, detail=wrong.detail) if wrong else None
        return PartStatus(name=PART, up=self.fault is None, fault=fault, duration_seconds=seconds)


class StoreReader:
    origin = PART
    written: Written | None = None

    def __init__(self, discovery: StoreDiscovery, node: str) -> None:
        self._discovery = discovery
        self._node = node

    async def read(self) -> Snapshot:
        return self._discovery.node(self._node)

    full = read  # a store has no evidence: there is nothing more than this

    async def close(self) -> None:
        """The discovery closes the store."""


def _kept(before: NodeReading | None, now: NodeReading) -> NodeReading:
    """Return the same snapshot until there is another scrape, so that it is not rendered again."""
    return now if before is None or before.scraped_at != now.scraped_at else before
