"""The cluster's heartbeat: in each interval every node is read, and what came of it is published."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

from podgpu import __version__
from podgpu.cluster.allocations import Allocated
from podgpu.cluster.reader import REASONS, Reader, ReadFault
from podgpu.cluster.retired import Retired
from podgpu.cluster.standing import Look, is_fresh, is_unchanged, stand
from podgpu.cluster.station import Station
from podgpu.cluster.survey import Place, Survey
from podgpu.errors import UserError
from podgpu.feed import Feed
from podgpu.insight import Terms, conclude_cluster, conclude_node, concluded
from podgpu.model import Cluster, ClusterNode, PartStatus, Snapshot

AT_ONCE = 64  # nodes that are read at a time
PUBLISH_SECONDS = 0.5  # at the least, between two clusters


class Given(Protocol):
    """What Kubernetes gave to whom, kept up to date by a watch."""

    def allocated(self) -> Allocated:
        """The newest: the same object until something changes."""

    def parts(self) -> tuple[PartStatus, ...]: ...

    async def complete(self) -> None:
        """Wait until everything was read once, or cannot be."""

    async def changed(self, seen: Allocated) -> Allocated:
        """Return the newest once it is another than `seen`."""

    async def run(self) -> None: ...

    async def close(self) -> None: ...


class ClusterLoop:
    """Reads and publishes. `ready` once the first round is over, whatever it found."""

    def __init__(
        self,
        survey: Survey,
        open_reader: Callable[[Place], Reader],
        *,
        interval: float,
        terms: Terms,
        name: str = "",
        given: Given | None = None,
        at_once: int = AT_ONCE,
    ) -> None:
        self.ready = False
        self._survey = survey
        self._open_reader = open_reader
        self._interval = interval
        self._terms = terms
        self._name = name
        self._given = given
        self._turns = asyncio.Semaphore(at_once)
        self._stations: dict[Place, Station] = {}
        self._parts: tuple[PartStatus, ...] = ()
        self._known: Mapping[str, ClusterNode] = {}
        self._retired = Retired()
        self._feed = Feed(Cluster(taken_at=time.time(), version=__version__, name=name))

    @property
    def cluster(self) -> Cluster:
        """The newest one, the same object until there is a newer one."""
        return self._feed.newest

    async def changed(self, seen: Cluster) -> Cluster:
        """Return the newest cluster once it is another than `seen`."""
        return await self._feed.changed(seen)

    async def full(self, name: str) -> Snapshot:
        """Fetch a node's snapshot with everything in it. Raises UserError."""
        now = time.monotonic()
        stations = [station for station in self._in_order() if station.name == name]
        if not stations:
            raise UserError(f"nobody reads the GPUs of a node {name!r}; /api/v1/cluster lists the nodes")
        chosen = next((one for one in stations if is_fresh(one.look(now), self._interval)), stations[0])
        try:
            return concluded(await chosen.reader.full(), self._terms, has_books=True)
        except ReadFault as fault:
            raise UserError(f"{name}: {fault.detail}; {REASONS[fault.reason]}") from None

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            if self._given is not None:
                group.create_task(self._given.run())
                group.create_task(self._follow(self._given))
            group.create_task(self._beat())

    async def round(self) -> None:
        """Read every node once. What is there already is published while the slow ones are waited for."""
        found = await self._survey.find()
        self._parts = found.parts
        await self._keep(found.places)
        reading = asyncio.gather(*(self._read(one) for one in self._stations.values()))
        while not reading.done():
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(reading), PUBLISH_SECONDS)
            self._publish()
        self.ready = True
        self._publish()

    async def close(self) -> None:
        self._retired.close()
        await self._keep(())
        await self._survey.close()
        if self._given is not None:
            await self._given.close()

    async def _follow(self, given: Given) -> None:
        """Publish what changes in Kubernetes without waiting for the next round."""
        seen = given.allocated()
        while True:
            seen = await given.changed(seen)
            if self.ready:
                self._publish()
            await asyncio.sleep(PUBLISH_SECONDS)

    async def _beat(self) -> None:
        if self._given is not None:
            await self._given.complete()
        while True:
            due = time.monotonic() + self._interval
            await self.round()
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def _read(self, station: Station) -> None:
        async with self._turns:
            await station.read()

    async def _keep(self, places: tuple[Place, ...]) -> None:
        """Open readers for new places, and close those of places that are gone."""
        for place in self._stations.keys() - set(places):
            await self._stations.pop(place).reader.close()
        for place in places:
            if place not in self._stations:
                self._stations[place] = Station(place, self._open_reader(place), self._terms)

    def _publish(self) -> None:
        allocated = self._given.allocated() if self._given else Allocated()
        nodes = self._nodes(allocated.nodes)
        parts = (*self._parts, *(self._given.parts() if self._given else ()))
        last = self.cluster
        is_same = _same(nodes, last.nodes) and allocated.pending == last.pending
        if self.ready and is_same and list(map(_state, parts)) == list(map(_state, last.parts)):
            return
        self._retired.add(last.nodes, nodes)
        cluster = Cluster(
            taken_at=time.time(),
            version=__version__,
            interval_seconds=self._interval,
            name=self._name,
            demo=any(node.snapshot is not None and node.snapshot.demo for node in nodes),
            nodes=nodes,
            pending=allocated.pending,
            parts=parts,
        )
        self._feed.publish(conclude_cluster(cluster, self._terms))

    def _in_order(self) -> list[Station]:
        """Those that stand in come last."""
        return sorted(self._stations.values(), key=lambda station: station.place.stands_in)

    def _nodes(self, known: Mapping[str, ClusterNode]) -> tuple[ClusterNode, ...]:
        now = time.monotonic()
        looks: dict[str, Look | None] = dict.fromkeys(known)
        for station in self._in_order():
            look, name = station.look(now), station.name
            before_it = looks.get(name)
            if before_it is not None and station.place.stands_in:
                if not is_fresh(before_it, self._interval) and is_fresh(look, self._interval):
                    looks[name] = look
                continue
            if before_it is not None:
                what = f"it reports node {name!r}, which another agent reports already"
                look, name = Look(fault=ReadFault("wrong_node", what)), station.address
            looks[name] = look
        before = {one.name: one for one in self.cluster.nodes}
        nodes = tuple([self._node(name, looks[name], known, before.get(name)) for name in sorted(looks)])
        self._known = known
        return nodes

    def _node(
        self, name: str, look: Look | None, known: Mapping[str, ClusterNode], before: ClusterNode | None
    ) -> ClusterNode:
        """Return the node as it was if nothing has changed: whoever rendered it need not do so again."""
        is_known_alike = self._known.get(name) is known.get(name)
        if before is not None and is_known_alike and is_unchanged(before, look, self._interval):
            return before
        now = conclude_node(stand(name, look, known.get(name), self._interval), self._terms)
        return before if before is not None and before.snapshot is now.snapshot and before == now else now


def _state(part: PartStatus) -> tuple[str, bool, str]:
    """What is worth publishing about a part: its age alone is not."""
    return part.name, part.up, part.fault.reason if part.fault else ""


def _same(nodes: tuple[ClusterNode, ...], others: tuple[ClusterNode, ...]) -> bool:
    return len(nodes) == len(others) and all(a is b for a, b in zip(nodes, others, strict=True))
