"""A node as it is read: its newest snapshot, why there is none, and which of several agents is believed."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from podgpu import log
from podgpu.cluster.discovery import NodeTarget
from podgpu.cluster.node_state import ReadFault, ReadState, SnapshotReader
from podgpu.insight import InsightSettings, concluded
from podgpu.insight.advice import next_step
from podgpu.insight.dark import blindness
from podgpu.insight.problem_kind import fault_words
from podgpu.model import Snapshot
from podgpu.model.kube import grouped

WINDOW_SECONDS = 60.0
MOST_LINES = 20  # in a window; a thousand agents that come and go would write thousands
NAMED = 3
_AGENTS_OWN = ("blind", "starting")  # an agent that answers logs by itself what is wrong


class NodeLog:
    """Logs which nodes go and which come back. Where many do, one line a minute counts them."""

    def __init__(self) -> None:
        self._ends = 0.0
        self._lines = 0
        self._lost: Counter[str] = Counter()  # by reason
        self._back = 0
        self._names: dict[str, None] = {}

    def lost(self, node: str, reason: str, detail: str) -> None:
        if self._has_room(node):
            log.warning("a node cannot be read", node=node, reason=reason, detail=detail)
        else:
            self._lost[reason] += 1

    def back(self, node: str) -> None:
        if self._has_room(node):
            log.info("a node is back", node=node)
        else:
            self._back += 1

    def sum_up(self) -> None:
        """Log how many had no line of their own, once the window is over. Called once in each interval."""
        if time.monotonic() < self._ends:
            return
        if self._lost or self._back:
            reasons = ",".join(f"{reason}:{count}" for reason, count in self._lost.most_common())
            such_as = ",".join(list(self._names)[:NAMED])
            log.warning(
                "many nodes come and go",
                lost=self._lost.total(),
                back=self._back,
                reasons=reasons,
                such_as=such_as,
            )
        self._ends, self._lines, self._back = 0.0, 0, 0
        self._lost.clear()
        self._names.clear()

    def _has_room(self, node: str) -> bool:
        if not self._ends:
            self._ends = time.monotonic() + WINDOW_SECONDS
        self._lines += 1
        if self._lines <= MOST_LINES:
            return True
        if len(self._names) < NAMED:
            self._names[node] = None
        return False


class NodeReader:
    """`snapshot` has its insight. It is the object that was read, if the agent concluded with the same settings."""

    def __init__(
        self, target: NodeTarget, reader: SnapshotReader, settings: InsightSettings, node_log: NodeLog
    ) -> None:
        self.target = target
        self.reader = reader
        self._settings = settings
        self._read: Snapshot | None = None
        self.snapshot: Snapshot | None = None
        self.fault: ReadFault | None = None
        self._new_at = 0.0
        self._at: float | None = None
        self._name = ""
        self._log = node_log

    @property
    def name(self) -> str:
        """The node's name: as Kubernetes knows it, else as the agent says or said, else its address."""
        return self.target.node or (self.snapshot.node if self.snapshot else self._name or self.address)

    @property
    def address(self) -> str:
        """For messages: without a login that may be in the URL."""
        return urlsplit(self.target.urls[0]).netloc.rpartition("@")[2]

    async def read(self) -> None:
        try:
            snapshot = await self.reader.read()
            is_new = snapshot is not self._read
            if is_new:
                _check_sight(snapshot)
            judged = concluded(snapshot, self._settings) if is_new else self.snapshot
        except ReadFault as fault:
            self._failed(fault)
        except Exception as error:  # one node must not stop the others
            self._failed(ReadFault("failed", repr(error)))
        else:
            if self.fault is not None and self.fault.reason not in _AGENTS_OWN:
                self._log.back(self.name)
            self.fault = None
            if is_new:
                self.snapshot, self._read, self._new_at = judged, snapshot, time.monotonic()
                self._at = time.time()

    def state(self, now: float) -> ReadState:
        return ReadState(
            origin=self.target.origin,
            snapshot=self.snapshot,
            written=self.reader.written,
            seconds=now - self._new_at,
            at=self._at,
            fault=self.fault,
        )

    async def forget(self, reader: SnapshotReader) -> None:
        """Keep the name of a node that has been dark for long, and since when. A new reader holds nothing of it."""
        self._name = self.name
        await self.reader.close()
        self.reader, self.snapshot, self._read = reader, None, None

    def _failed(self, fault: ReadFault) -> None:
        if fault.reason not in _AGENTS_OWN and (self.fault is None or self.fault.reason != fault.reason):
            self._log.lost(self.name, fault.reason, fault.detail)
        self.fault = fault


def _check_sight(snapshot: Snapshot) -> None:
    """An agent that sees no GPU says nothing about those that there are. Raises ReadFault."""
    blind = blindness(snapshot)
    if blind is None:
        return
    part, fault = blind
    if fault.reason == "starting":
        raise ReadFault("starting", "")
    raise ReadFault("blind", f"{part}: {fault_words(fault)}. {next_step(fault, part)}")


def believed_reader(node: str, readers: Sequence[NodeReader]) -> NodeReader | None:
    """Return the reader whose agent Kubernetes runs on the node, else the only one that reports it."""
    believed = [reader for reader in readers if reader.target.node == node] or readers
    return believed[0] if len(believed) == 1 else None


def conflict(node: str, readers: Sequence[NodeReader]) -> ReadFault:
    addresses = " and ".join(sorted(reader.address for reader in readers))
    return ReadFault("conflict", f"node {node!r} is reported by {addresses}")


def states_by_name(readers: Iterable[NodeReader], now: float) -> dict[str, ReadState]:
    """Return the state of each node. An agent that is not believed is listed by its address."""
    by_name = grouped(readers, lambda reader: reader.name)
    states: dict[str, ReadState] = {}
    refused: dict[str, ReadState] = {}
    for name, claimants in by_name.items():
        believed = believed_reader(name, claimants)
        if believed is not None:
            states[name] = believed.state(now)
            fault = ReadFault("wrong_node", f"it reports node {name!r}, which has an agent of its own")
        else:
            fault = conflict(name, claimants)
            states[name] = ReadState(fault=fault)
        refused |= {reader.address: ReadState(fault=fault) for reader in claimants if reader is not believed}
    return states | refused
