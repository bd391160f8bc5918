"""Several clusters as one: their nodes side by side, under the names of their clusters.

Each node is shown as its own cluster concluded it, so that both say the same. Nothing is read twice.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Protocol
from urllib.parse import quote

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podgpu import log
from podgpu.cluster.agent_reader import AgentClient
from podgpu.cluster.loop import PublishingLoop
from podgpu.cluster.node_state import REASONS, REMEMBER_SECONDS, STALE_INTERVALS, STALE_SECONDS, ReadFault, with_reason
from podgpu.errors import UserError
from podgpu.insight import InsightSettings, conclude_node
from podgpu.insight.dark import last_words
from podgpu.model import Cluster, ClusterNode, Fault, LastWords, PartStatus, Snapshot, document

PART = "upstreams"
ROWS_AT_ONCE = 20  # decoded before other work has its turn
# The document of a cluster with 8,000 GPUs has about 60 MB. Decoded, it takes four times as much.
MOST_BYTES = 128 << 20
MOST_PARTS = 6_000_000  # fields and objects; the same cluster has 2.3 million
MOST_NODES = 20_000
MOST_HEAD_BYTES = 16 << 20  # of what is not the row of a node, such as the pods that wait
MOST_ROW_BYTES = 8 << 20  # as for an agent's own document


class Upstream(Protocol):
    """The reader of one of the clusters."""

    name: str

    async def read(self) -> Cluster:
        """Return the newest cluster. A node that has not changed is the same object. Raises ReadFault."""

    async def full(self, node: str) -> Snapshot:
        """Return the snapshot of a node with everything in it. Raises UserError."""

    async def close(self) -> None: ...


class UpstreamServer:
    """Another `podgpu cluster`, at its address."""

    def __init__(self, name: str, url: str, client: AgentClient) -> None:
        self.name = name
        self._url = url.rstrip("/")
        self._client = client
        self._etag = ""
        self._cluster: Cluster | None = None
        self._rows: dict[int, ClusterNode] = {}  # by the hash of what they were decoded from

    async def read(self) -> Cluster:
        answer = await self._client.get(f"{self._url}/api/v1/cluster", self._etag if self._cluster else "")
        if answer.body is None:
            if self._cluster is None:
                raise ReadFault("garbage", "it answers that nothing has changed, but sent nothing before")
            return self._cluster
        try:
            _check_sizes(answer.body)
            cluster, rows = document.split(answer.body)
            nodes = await self._decoded(rows)
        except UserError as error:
            raise ReadFault("garbage", str(error)) from None
        self._cluster, self._etag = replace(cluster, nodes=nodes), answer.etag
        return self._cluster

    async def full(self, node: str) -> Snapshot:
        try:
            answer = await self._client.get(f"{self._url}/api/v1/snapshot?node={quote(node, safe='')}")
        except ReadFault as fault:
            raise UserError(f"{self.name}: {fault.detail}; {REASONS[fault.reason]}") from None
        return document.decode(answer.body or b"")

    async def close(self) -> None:
        self._client.forget(self._url)

    async def _decoded(self, rows: Sequence[msgspec.Raw]) -> tuple[ClusterNode, ...]:
        """Decode what has changed. A large cluster takes seconds, so other work has its turn in between."""
        nodes: list[ClusterNode] = []
        known, self._rows = self._rows, {}
        for number, row in enumerate(rows):
            key = hash(bytes(row))
            node = known.get(key)
            if node is None:
                node = _row(row)
                if number % ROWS_AT_ONCE == 0:
                    await asyncio.sleep(0)
            self._rows[key] = node
            nodes.append(node)
        return tuple(nodes)


def _check_sizes(body: bytes) -> None:
    """Look before anything is decoded: small objects take many times their size in memory. Raises ReadFault."""
    if body.count(b",") + body.count(b"{") > MOST_PARTS:
        raise ReadFault("too_large", f"its document has more than {MOST_PARTS // 1_000_000} million fields")
    sizes = document.row_sizes(body)
    if len(sizes) > MOST_NODES:
        raise ReadFault("too_large", f"it lists {len(sizes)} nodes; at most {MOST_NODES} are read from a cluster")
    if len(body) - sum(sizes) > MOST_HEAD_BYTES:
        raise ReadFault("too_large", f"it sends more than {MOST_HEAD_BYTES >> 20} MiB beside its nodes")


def _row(row: msgspec.Raw) -> ClusterNode:
    """Whatever the row of a node holds, the others are shown."""
    try:
        if (size := len(memoryview(row))) > MOST_ROW_BYTES:
            failed = ClusterNode(name=document.name_of(row), state="failed")
            return with_reason(failed, "failed", "too_large", f"its row has {size >> 20} MiB")
        return document.decode_row(row)
    except UserError as error:
        return with_reason(ClusterNode(name=document.name_of(row), state="failed"), "failed", "garbage", str(error))


class _Read(Struct):
    """What was last read of an upstream, and when; and why it cannot be read now."""

    cluster: Cluster | None = None
    at: float = 0.0
    moment: float = 0.0  # the same, in seconds since 1970
    fault: ReadFault | None = None
    nodes: dict[int, tuple[ClusterNode, ClusterNode]] = {}  # by the id of the upstream's own
    aged: dict[int, tuple[ClusterNode, ClusterNode]] = {}  # those nodes while the upstream is dark, by their ids


class Federation(PublishingLoop):
    """Reads other clusters, as ClusterLoop reads nodes."""

    def __init__(
        self,
        upstreams: Sequence[Upstream],
        *,
        interval: float,
        settings: InsightSettings,
        name: str = "",
        remember: float = REMEMBER_SECONDS,
    ) -> None:
        super().__init__(interval=interval, settings=settings, name=name)
        self._upstreams = {upstream.name: upstream for upstream in upstreams}
        self._remember = remember
        self._read: dict[str, _Read] = {name: _Read(nodes={}, aged={}) for name in self._upstreams}

    async def full(self, name: str) -> Snapshot:
        cluster, _, node = name.partition("/")
        upstream = self._upstreams.get(cluster)
        if upstream is None or not node:
            raise UserError(f"there is no node {name!r}; /api/v1/cluster lists the nodes as CLUSTER/NODE")
        return _renamed_snapshot(await upstream.full(node), cluster)

    async def run(self) -> None:
        await self.supervisor.run([(PART, self._rounds)])

    async def round(self) -> None:
        await asyncio.gather(*map(self._read_upstream, self._upstreams.values()))
        self._publish()
        self.ready = True  # last: a command looks from another thread, and must find what was published

    async def close(self) -> None:
        for upstream in self._upstreams.values():
            await upstream.close()

    async def _read_upstream(self, upstream: Upstream) -> None:
        read = self._read[upstream.name]
        try:
            cluster = await upstream.read()
        except ReadFault as fault:
            failed = fault
        except Exception as error:  # one cluster must not stop the others
            failed = ReadFault("failed", repr(error))
        else:
            if read.fault is not None:
                log.info("a cluster is back", cluster=upstream.name)
            read.cluster, read.at, read.moment, read.fault = cluster, time.monotonic(), time.time(), None
            return
        is_new = read.fault is None or read.fault.reason != failed.reason
        if is_new and failed.reason != "starting":
            log.warning("a cluster cannot be read", cluster=upstream.name, reason=failed.reason, detail=failed.detail)
        read.fault = failed

    def _publish(self) -> None:
        clusters = {name: read.cluster for name, read in self._read.items() if read.cluster is not None}
        found = [node for name, cluster in clusters.items() for node in self._nodes(name, cluster)]
        nodes = tuple(sorted(found, key=lambda node: node.name))
        pending = tuple(replace(pod, cluster=name) for name, cluster in clusters.items() for pod in cluster.pending)
        self._publish_changes(nodes, pending, self._parts(), demo=any(cluster.demo for cluster in clusters.values()))

    def _parts(self) -> list[PartStatus]:
        return [
            PartStatus(
                name=name,
                up=read.fault is None and read.cluster is not None,
                fault=_fault(read),
                age_seconds=time.monotonic() - read.at if read.cluster is not None else None,
            )
            for name, read in sorted(self._read.items())
        ]

    def _nodes(self, name: str, cluster: Cluster) -> list[ClusterNode]:
        """Return the same objects for nodes that have not changed, so that they are not rendered again."""
        read = self._read[name]
        seconds = time.monotonic() - read.at
        is_current = seconds <= STALE_INTERVALS * max(self.interval, cluster.interval_seconds)
        before, read.nodes = read.nodes, {}
        for node in cluster.nodes:
            # The upstream's own node is kept beside it, so that no other can have its id.
            _, shown = before.get(id(node), (node, None))
            if shown is None:
                shown = conclude_node(renamed(node, name), self._settings)
            read.nodes[id(node)] = node, shown
        shown_now = list({shown.name: shown for _, shown in read.nodes.values()}.values())
        if is_current:
            read.aged = {}
            return shown_now
        return self._aged(read, shown_now, seconds)

    def _aged(self, read: _Read, nodes: Sequence[ClusterNode], seconds: float) -> list[ClusterNode]:
        """Return the nodes of a cluster that cannot be read: the same objects until more is to be said."""
        before, read.aged = read.aged, {}
        for node in nodes:
            now = _aged(node, read, seconds, self._remember)
            _, last = before.get(id(node), (node, None))
            if last is None or _sign(last) != _sign(now):
                last = conclude_node(now, self._settings)
            read.aged[id(node)] = node, last
        return [aged for _, aged in read.aged.values()]


def _fault(read: _Read) -> Fault | None:
    if read.fault is None:
        return None if read.cluster is not None else Fault(reason="starting")
    return Fault(reason=read.fault.reason, detail=read.fault.detail)


def _aged(node: ClusterNode, read: _Read, seconds: float, remember: float) -> ClusterNode:
    """Say of a node that its whole cluster cannot be read."""
    reason, detail = (read.fault.reason, read.fault.detail) if read.fault else ("stopped", "")
    at = node.heard.at if node.heard else read.moment
    if seconds > remember:
        bare = replace(node, snapshot=None, written=None, insight=None, heard=LastWords(at=at))
        return with_reason(bare, "failed", reason, detail)
    if node.state == "fresh" and node.snapshot is not None:
        node = replace(node, state="stale", heard=last_words(node.snapshot, at))
    aged = replace(with_reason(node, node.state, reason, detail), origin=node.origin)
    return replace(aged, state="failed") if seconds > STALE_SECONDS and node.state == "stale" else aged


def _sign(node: ClusterNode) -> tuple[str, str, str]:
    return node.state, node.reason, node.detail


def renamed(node: ClusterNode, cluster: str) -> ClusterNode:
    """Return the node under the name of its cluster: two clusters may have nodes of one name."""
    return replace(
        node,
        cluster=cluster,
        name=f"{cluster}/{node.name}",
        snapshot=_renamed_snapshot(node.snapshot, cluster) if node.snapshot else None,
        written=None,
    )


def _renamed_snapshot(snapshot: Snapshot, cluster: str) -> Snapshot:
    insight = snapshot.insight
    if insight is not None:
        problems = tuple(
            replace(problem, node=f"{cluster}/{problem.node}") if problem.node else problem
            for problem in insight.problems
        )
        insight = replace(insight, problems=problems)
    return replace(snapshot, node=f"{cluster}/{snapshot.node}", insight=insight)
