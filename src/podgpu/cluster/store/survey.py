"""The nodes of a store for the cluster's loop. All are read at once, and each has a reader that hands it out."""

import time

from podgpu.cluster.discovery import Discovered, NodeTarget
from podgpu.cluster.node_state import ReadFault
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.fault import EMPTY, NOTHING, StoreFault
from podgpu.cluster.store.nodes import NodeReading, StoreReading, read
from podgpu.model import Fault, PartStatus, Snapshot

PART = "store"


class StoreDiscovery:
    """Keeps the nodes that it knows while the store does not answer."""

    def __init__(self, store: Store, url: str) -> None:
        self._store = store
        self._url = url
        self._last = StoreReading({})
        self.fault: StoreFault | None = None

    async def find(self) -> Discovered:
        began = time.monotonic()
        try:
            found = await read(self._store, time.time())
        except StoreFault as fault:
            self.fault = fault
        else:
            self.fault = None
            self._last = StoreReading(
                {name: _kept(self._last.nodes.get(name), one) for name, one in found.nodes.items()},
                found.silent,
                found.broken,
                found.notices,
            )
        names = sorted({*self._last.nodes, *self._last.silent, *self._last.broken})
        targets = (NodeTarget(PART, (self._url,), name) for name in names)
        return Discovered(tuple(targets), (self._part(time.monotonic() - began),))

    def node(self, name: str) -> Snapshot:
        """Return the node's newest snapshot. Raises ReadFault."""
        if self.fault is not None:
            raise ReadFault("store_failed", f"{self.fault.reason}: {self.fault.detail}")
        if name in self._last.broken:
            raise ReadFault("implausible", self._last.broken[name])
        found = self._last.nodes.get(name)
        if found is None or found.is_stale:
            seconds = found.seconds if found else self._last.silent.get(name, 0.0)
            raise ReadFault("not_scraped", f"its last scrape was {seconds:.0f} s ago")
        return found.snapshot

    def open_reader(self, target: NodeTarget) -> "StoreReader":
        return StoreReader(self, target.node)

    async def close(self) -> None:
        await self._store.close()

    def _part(self, seconds: float) -> PartStatus:
        """A store that says that something may be missing works, and says so."""
        fault = None
        if self.fault is not None:
            fault = Fault(reason=self.fault.reason, detail=self.fault.detail)
        elif not self._last.nodes and not self._last.silent:
            fault = Fault(reason=EMPTY, detail=NOTHING)
        elif self._last.notices:
            first = self._last.notices[0]
            fault = Fault(reason=first.reason, detail=first.detail)
        return PartStatus(name=PART, up=self.fault is None, fault=fault, duration_seconds=seconds)


class StoreReader:
    origin = PART
    written = None

    def __init__(self, survey: StoreDiscovery, node: str) -> None:
        self._survey = survey
        self._node = node

    async def read(self) -> Snapshot:
        return self._survey.node(self._node)

    async def full(self) -> Snapshot:
        """A store has no evidence: there is nothing more than this."""
        return self._survey.node(self._node)

    async def close(self) -> None:
        """The survey closes the store."""


def _kept(before: NodeReading | None, now: NodeReading) -> NodeReading:
    """Hand out the same snapshot until there is another scrape: nobody need render it again."""
    if before is None or before.scraped_at != now.scraped_at:
        return now
    return NodeReading(before.snapshot, now.scraped_at, now.seconds, now.scrape_seconds)
