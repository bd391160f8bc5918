"""Reads every node once in each interval, and publishes the cluster."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from msgspec.structs import replace

from podgpu import __version__
from podgpu.cluster.allocations import ClusterAllocations, KubeAllocations
from podgpu.cluster.discovery import Discovery, NodeTarget
from podgpu.cluster.node_reader import NodeLog, NodeReader, believed_reader, conflict, states_by_name
from podgpu.cluster.node_state import (
    REASONS,
    REMEMBER_SECONDS,
    ReadFault,
    ReadState,
    ReadTimes,
    SnapshotReader,
    is_fresh,
    is_unchanged,
    node_state,
)
from podgpu.cluster.remembered import RememberedNodes
from podgpu.errors import UserError
from podgpu.feed import Feed
from podgpu.insight import InsightSettings, conclude_cluster, conclude_node, concluded
from podgpu.model import Cluster, ClusterNode, ErrorCount, PartStatus, PendingPod, Snapshot
from podgpu.supervise import Supervisor, Work, brief, end

AT_ONCE = 64  # nodes that are read at a time
PUBLISH_SECONDS = 0.5  # at the least, between two clusters
FREE_SECONDS, FREED_AT_ONCE = 0.01, 20  # of replaced nodes
PART = "nodes"

T = TypeVar("T")


class PublishingLoop(ABC):
    """Reads in rounds and publishes clusters. `ready` once the first round is over, whatever it found."""

    def __init__(self, *, interval: float, settings: InsightSettings, name: str, has_store: bool = False) -> None:
        self.ready = False
        self.interval = interval
        self.supervisor = Supervisor(self._publish)
        self._settings = settings
        self._checked_at = time.monotonic()
        self._feed = Feed(Cluster(taken_at=time.time(), version=__version__, name=name, has_store=has_store))

    @property
    def cluster(self) -> Cluster:
        """The newest cluster: the same object until there is a newer one."""
        return self._feed.newest

    @property
    def seconds_behind(self) -> float:
        """How long ago the state of the nodes was last checked. Each cluster says how old its nodes are."""
        return time.monotonic() - self._checked_at

    async def changed(self, seen: Cluster) -> Cluster:
        """Return the newest cluster once it is another than `seen`."""
        return await self._feed.changed(seen)

    @abstractmethod
    async def full(self, name: str) -> Snapshot:
        """Fetch a node's snapshot with everything in it. Raises UserError."""

    @abstractmethod
    async def run(self) -> None:
        """Work until cancelled."""

    @abstractmethod
    async def round(self) -> None:
        """Read everything once."""

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    def _publish(self) -> None: ...

    async def _rounds(self) -> None:
        while True:
            due = time.monotonic() + self.interval
            await self.round()
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    def _publish_changes(
        self,
        nodes: tuple[ClusterNode, ...],
        pending: tuple[PendingPod, ...],
        parts: Sequence[PartStatus],
        *,
        demo: bool,
    ) -> bool:
        """Publish a cluster, unless the newest one says the same. Return whether it was published."""
        last = self.cluster
        self._checked_at = time.monotonic()
        shown = self.supervisor.shown(tuple(parts))
        errors = tuple(
            ErrorCount(source=source, reason=reason, count=count)
            for (source, reason), count in sorted(self.supervisor.errors.items())
        )
        is_same = [*map(id, nodes)] == [*map(id, last.nodes)] and (pending, errors) == (last.pending, last.errors)
        is_same = is_same and [*map(_part_state, shown)] == [*map(_part_state, last.parts)]
        # The age of what is dark is said in words, so these change though nothing else does.
        has_aged = time.time() - last.taken_at >= self.interval and any(node.is_dark for node in nodes)
        if self.ready and is_same and not has_aged:
            return False
        cluster = replace(
            last,
            taken_at=time.time(),
            interval_seconds=self.interval,
            demo=demo,
            nodes=nodes,
            pending=pending,
            parts=shown,
            errors=errors,
        )
        self._feed.publish(conclude_cluster(cluster, self._settings))
        return True


class ClusterLoop(PublishingLoop):
    """Reads every node."""

    def __init__(
        self,
        discovery: Discovery,
        open_reader: Callable[[NodeTarget], SnapshotReader],
        *,
        interval: float,
        settings: InsightSettings,
        name: str = "",
        allocations: KubeAllocations | None = None,
        has_store: bool = False,
        remember: float = REMEMBER_SECONDS,
    ) -> None:
        super().__init__(interval=interval, settings=settings, name=name, has_store=has_store)
        self._times = ReadTimes(interval, remember)
        self._remembered = RememberedNodes(remember)
        self._discovery = discovery
        self._open_reader = open_reader
        self._allocations = allocations
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._readers: dict[NodeTarget, NodeReader] = {}
        self._parts: tuple[PartStatus, ...] = ()
        self._log = NodeLog()
        self._known: Mapping[str, ClusterNode] = {}
        self._replaced = _ReplacedNodes()

    async def full(self, name: str) -> Snapshot:
        claimants = [reader for reader in self._readers.values() if reader.name == name]
        agents = [reader for reader in claimants if not reader.target.is_fallback]
        believed = believed_reader(name, agents)
        if believed is None and agents:
            raise UserError(f"{name}: {conflict(name, agents).detail}; {REASONS['conflict']}")
        readers = [reader for reader in claimants if reader is believed or reader.target.is_fallback]
        if not readers:
            raise UserError(f"nothing reads the GPUs of a node {name!r}; /api/v1/cluster lists the nodes")
        now = time.monotonic()
        readers.sort(key=lambda reader: reader.target.is_fallback)
        chosen = next((reader for reader in readers if is_fresh(reader.state(now), self.interval)), readers[0])
        try:
            return concluded(await chosen.reader.full(), self._settings, has_books=True)
        except ReadFault as fault:
            raise UserError(f"{name}: {fault.detail}; {REASONS[fault.reason]}") from None

    async def run(self) -> None:
        works: list[tuple[str, Work]] = [(PART, self._rounds), (PART, self._age)]
        if self._allocations is not None:
            works.append((PART, partial(self._allocations.run, self.supervisor)))
            works.append((PART, partial(self._follow, self._allocations)))
        await self.supervisor.run(works)

    async def round(self) -> None:
        """Read every node once. What has been read is published while slow nodes are still being read."""
        found = await self._while_publishing(self._discovery.find())
        self._parts = found.parts
        await self._keep(found.targets)
        await self._while_publishing(self._read_all())
        self._publish()
        self.ready = True  # last: a command looks from another thread, and must find what was published
        self._log.sum_up()

    async def close(self) -> None:
        self._replaced.close()
        await self._keep(())
        await self._discovery.close()
        if self._allocations is not None:
            await self._allocations.close()

    async def _follow(self, allocations: KubeAllocations) -> None:
        """Publish what changes in Kubernetes without waiting for the next round."""
        seen = allocations.newest()
        while True:
            seen = await allocations.changed(seen)
            if self.ready:
                self._publish()
            await asyncio.sleep(PUBLISH_SECONDS)

    async def _rounds(self) -> None:
        if self._allocations is not None:
            await self._allocations.complete()
        await super()._rounds()

    async def _age(self) -> None:
        """Publish that nodes have grown old, even if a round hangs or fails."""
        while True:
            await asyncio.sleep(self.interval)
            self._publish()

    async def _while_publishing(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work, and publish meanwhile what has been read."""
        task = brief(work)
        try:
            while not (await asyncio.wait({task}, timeout=PUBLISH_SECONDS))[0]:
                self._publish()
            return task.result()
        finally:
            await end(task)

    async def _read_all(self) -> None:
        async def read(reader: NodeReader) -> None:
            async with self._turns:
                await reader.read()

        await asyncio.gather(*map(read, self._readers.values()))

    async def _keep(self, targets: tuple[NodeTarget, ...]) -> None:
        """Open readers for new targets, and close those of targets that are gone."""
        for target in self._readers.keys() - set(targets):
            await self._readers.pop(target).reader.close()
        for target in targets:
            if target not in self._readers:
                self._readers[target] = NodeReader(target, self._open_reader(target), self._settings, self._log)
        now = time.monotonic()
        for target, reader in self._readers.items():
            if reader.snapshot is not None and reader.state(now).seconds > self._times.remember:
                await reader.forget(self._open_reader(target))

    def _publish(self) -> None:
        allocated = self._allocations.newest() if self._allocations else ClusterAllocations()
        nodes, last = self._nodes(allocated.nodes), self.cluster.nodes
        parts = (*self._parts, *(self._allocations.parts() if self._allocations else ()))
        is_demo = any(node.snapshot is not None and node.snapshot.demo for node in nodes)
        if self._publish_changes(nodes, allocated.pending, parts, demo=is_demo):
            self._replaced.add(last, nodes)

    def _shown(self, agent: ReadState | None, fallback: ReadState) -> ReadState:
        """Choose what is shown of a node that the store knows too. A conflict is always shown."""
        if agent is None:
            return fallback
        is_conflict = agent.fault is not None and agent.fault.reason == "conflict"
        if is_conflict or is_fresh(agent, self.interval) or not is_fresh(fallback, self.interval):
            return agent
        return fallback

    def _nodes(self, known: Mapping[str, ClusterNode]) -> tuple[ClusterNode, ...]:
        now = time.monotonic()
        states: dict[str, ReadState | None] = dict.fromkeys(known)
        agents = [reader for reader in self._readers.values() if not reader.target.is_fallback]
        states |= states_by_name(agents, now)
        for reader in self._readers.values():
            if reader.target.is_fallback:
                states[reader.name] = self._shown(states.get(reader.name), reader.state(now))
        self._remembered.fill(states, now)
        before = {node.name: node for node in self.cluster.nodes}
        nodes = tuple([self._node(name, states[name], known, before.get(name)) for name in sorted(states)])
        self._known = known
        return nodes

    def _node(
        self, name: str, read: ReadState | None, known: Mapping[str, ClusterNode], before: ClusterNode | None
    ) -> ClusterNode:
        """Return the same object if nothing has changed, so that it need not be rendered again."""
        is_known_alike = self._known.get(name) is known.get(name)
        if before is not None and is_known_alike and is_unchanged(before, read, known.get(name), self._times):
            return before
        now = conclude_node(node_state(name, read, known.get(name), self._times), self._settings)
        return before if before is not None and before.snapshot is now.snapshot and before == now else now


def _part_state(part: PartStatus) -> tuple[str, bool, str]:
    """What is worth publishing about a part: its age alone is not."""
    return part.name, part.up, part.fault.reason if part.fault else ""


class _ReplacedNodes:
    """Frees replaced nodes bit by bit: to free a thousand snapshots at once takes a tenth of a second."""

    def __init__(self) -> None:
        self._nodes: list[ClusterNode] = []
        self._next: asyncio.TimerHandle | None = None

    def add(self, before: Iterable[ClusterNode], now: Iterable[ClusterNode]) -> None:
        """Take the nodes that are not there any more."""
        kept = {id(node) for node in now}
        self._nodes += [node for node in before if id(node) not in kept]
        if self._nodes and self._next is None:
            self._wait()

    def close(self) -> None:
        if self._next is not None:
            self._next.cancel()
        self._nodes.clear()

    def _wait(self) -> None:
        self._next = asyncio.get_running_loop().call_later(FREE_SECONDS, self._drop)

    def _drop(self) -> None:
        self._next = None
        del self._nodes[:FREED_AT_ONCE]
        if self._nodes:
            self._wait()
