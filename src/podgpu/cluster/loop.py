"""The cluster's heartbeat: in each interval every node is read, and what came of it is published."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar

from podgpu import __version__
from podgpu.cluster.allocations import Allocated
from podgpu.cluster.claims import conflict, holder, looks_by_name
from podgpu.cluster.node_log import NodeLog
from podgpu.cluster.reader import REASONS, Reader, ReadFault
from podgpu.cluster.retired import Retired
from podgpu.cluster.standing import Look, is_fresh, is_unchanged, stand
from podgpu.cluster.station import Station
from podgpu.cluster.survey import Place, Survey
from podgpu.errors import UserError
from podgpu.feed import Feed
from podgpu.insight import InsightSettings, conclude_cluster, conclude_node, concluded
from podgpu.model import Cluster, ClusterNode, ErrorCount, PartStatus, Snapshot
from podgpu.supervise import Supervisor, Work, brief, end

AT_ONCE = 64  # nodes that are read at a time
PUBLISH_SECONDS = 0.5  # at the least, between two clusters
PART = "nodes"

T = TypeVar("T")


class Given(Protocol):
    """What Kubernetes gave to whom, kept up to date by a watch."""

    def allocated(self) -> Allocated:
        """The newest: the same object until something changes."""

    def parts(self) -> tuple[PartStatus, ...]: ...

    async def complete(self) -> None:
        """Wait until everything was read once, or cannot be."""

    async def changed(self, seen: Allocated) -> Allocated:
        """Return the newest once it is another than `seen`."""

    async def run(self, supervisor: Supervisor) -> None: ...

    async def close(self) -> None: ...


class ClusterLoop:
    """Reads and publishes. `ready` once the first round is over, whatever it found."""

    def __init__(
        self,
        survey: Survey,
        open_reader: Callable[[Place], Reader],
        *,
        interval: float,
        settings: InsightSettings,
        name: str = "",
        given: Given | None = None,
        at_once: int = AT_ONCE,
    ) -> None:
        self.ready = False
        self.supervisor = Supervisor(self._publish)
        self.interval = interval
        self._looked_at = time.monotonic()
        self._survey = survey
        self._open_reader = open_reader
        self._settings = settings
        self._name = name
        self._given = given
        self._turns = asyncio.Semaphore(at_once)
        self._stations: dict[Place, Station] = {}
        self._parts: tuple[PartStatus, ...] = ()
        self._log = NodeLog()
        self._known: Mapping[str, ClusterNode] = {}
        self._retired = Retired()
        self._feed = Feed(Cluster(taken_at=time.time(), version=__version__, name=name))

    @property
    def cluster(self) -> Cluster:
        """The newest one, the same object until there is a newer one."""
        return self._feed.newest

    @property
    def seconds_behind(self) -> float:
        """How long ago it was last looked how the nodes stand. Each cluster says how old its nodes are."""
        return time.monotonic() - self._looked_at

    async def changed(self, seen: Cluster) -> Cluster:
        """Return the newest cluster once it is another than `seen`."""
        return await self._feed.changed(seen)

    async def full(self, name: str) -> Snapshot:
        """Fetch a node's snapshot with everything in it. Raises UserError."""
        agents, others = self._claims(name)
        reading = holder(name, agents)
        if reading is None and agents:
            raise UserError(f"{name}: {conflict(name, agents).detail}; {REASONS['conflict']}")
        stations = [*([reading] if reading else []), *others]
        now = time.monotonic()
        if not stations:
            raise UserError(f"nobody reads the GPUs of a node {name!r}; /api/v1/cluster lists the nodes")
        chosen = next((one for one in stations if is_fresh(one.look(now), self.interval)), stations[0])
        try:
            return concluded(await chosen.reader.full(), self._settings, has_books=True)
        except ReadFault as fault:
            raise UserError(f"{name}: {fault.detail}; {REASONS[fault.reason]}") from None

    async def run(self) -> None:
        """Work until cancelled."""
        works: list[tuple[str, Work]] = [(PART, self._beat), (PART, self._look)]
        if self._given is not None:
            works.append((PART, partial(self._given.run, self.supervisor)))
            works.append((PART, partial(self._follow, self._given)))
        await self.supervisor.run(works)

    async def round(self) -> None:
        """Read every node once. What is there already is published while the slow ones are waited for."""
        found = await self._while_publishing(self._survey.find())
        self._parts = found.parts
        await self._keep(found.places)
        await self._while_publishing(self._read_all())
        self.ready = True
        self._publish()
        self._log.sum_up()

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
            due = time.monotonic() + self.interval
            await self.round()
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def _look(self) -> None:
        """See to it that nodes grow old on the page even if a round hangs or fails."""
        while True:
            await asyncio.sleep(self.interval)
            self._publish()

    async def _while_publishing(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work, and show meanwhile what there is already."""
        task = brief(work)
        try:
            while not (await asyncio.wait({task}, timeout=PUBLISH_SECONDS))[0]:
                self._publish()
            return task.result()
        finally:
            await end(task)

    async def _read_all(self) -> None:
        await asyncio.gather(*(self._read(one) for one in self._stations.values()))

    async def _read(self, station: Station) -> None:
        async with self._turns:
            await station.read()

    async def _keep(self, places: tuple[Place, ...]) -> None:
        """Open readers for new places, and close those of places that are gone."""
        for place in self._stations.keys() - set(places):
            await self._stations.pop(place).reader.close()
        for place in places:
            if place not in self._stations:
                self._stations[place] = Station(place, self._open_reader(place), self._settings, self._log)

    def _publish(self) -> None:
        allocated = self._given.allocated() if self._given else Allocated()
        nodes = self._nodes(allocated.nodes)
        parts = self.supervisor.shown((*self._parts, *(self._given.parts() if self._given else ())))
        last = self.cluster
        self._looked_at = time.monotonic()
        errors = tuple(
            ErrorCount(source=source, reason=reason, count=count)
            for (source, reason), count in sorted(self.supervisor.errors.items())
        )
        is_same = _same(nodes, last.nodes) and (allocated.pending, errors) == (last.pending, last.errors)
        if self.ready and is_same and list(map(_state, parts)) == list(map(_state, last.parts)):
            return
        self._retired.add(last.nodes, nodes)
        cluster = Cluster(
            taken_at=time.time(),
            version=__version__,
            interval_seconds=self.interval,
            name=self._name,
            demo=any(node.snapshot is not None and node.snapshot.demo for node in nodes),
            nodes=nodes,
            pending=allocated.pending,
            parts=parts,
            errors=errors,
        )
        self._feed.publish(conclude_cluster(cluster, self._settings))

    def _claims(self, name: str) -> tuple[list[Station], list[Station]]:
        """Return who reports the node, and who stands in for them."""
        found = [station for station in self._stations.values() if station.name == name]
        return [one for one in found if not one.place.stands_in], [
            one for one in found if one.place.stands_in
        ]

    def _backed(self, look: Look | None, other: Look) -> Look:
        """Choose what is shown of a node that somebody stands in for. A dispute stays one."""
        if look is None:
            return other
        is_disputed = look.fault is not None and look.fault.reason == "conflict"
        if is_disputed or is_fresh(look, self.interval) or not is_fresh(other, self.interval):
            return look
        return other

    def _nodes(self, known: Mapping[str, ClusterNode]) -> tuple[ClusterNode, ...]:
        now = time.monotonic()
        looks: dict[str, Look | None] = dict.fromkeys(known)
        agents = [station for station in self._stations.values() if not station.place.stands_in]
        looks |= looks_by_name(agents, now)
        for station in self._stations.values():
            if station.place.stands_in:
                looks[station.name] = self._backed(looks.get(station.name), station.look(now))
        before = {one.name: one for one in self.cluster.nodes}
        nodes = tuple([self._node(name, looks[name], known, before.get(name)) for name in sorted(looks)])
        self._known = known
        return nodes

    def _node(
        self, name: str, look: Look | None, known: Mapping[str, ClusterNode], before: ClusterNode | None
    ) -> ClusterNode:
        """Return the node as it was if nothing has changed: whoever rendered it need not do so again."""
        is_known_alike = self._known.get(name) is known.get(name)
        if before is not None and is_known_alike and is_unchanged(before, look, self.interval):
            return before
        now = conclude_node(stand(name, look, known.get(name), self.interval), self._settings)
        return before if before is not None and before.snapshot is now.snapshot and before == now else now


def _state(part: PartStatus) -> tuple[str, bool, str]:
    """What is worth publishing about a part: its age alone is not."""
    return part.name, part.up, part.fault.reason if part.fault else ""


def _same(nodes: tuple[ClusterNode, ...], others: tuple[ClusterNode, ...]) -> bool:
    return len(nodes) == len(others) and all(a is b for a, b in zip(nodes, others, strict=True))
