"""A cluster whose agents are stopped, cut off, slow, or lie: real readers over real sockets, by a clock that is set.

Each play names what its agents do. Half of the nodes are dark at the end, unless the name says otherwise.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace

from podgpu.cluster import loop as loop_module
from podgpu.cluster import node_reader
from podgpu.cluster.agent_reader import AgentReader, DirectClient, FetchedDocument
from podgpu.cluster.discovery import Discovered, NodeTarget
from podgpu.cluster.loop import ClusterLoop
from podgpu.insight import conclude
from podgpu.model import Card, Cluster, Fault, Gpu, PartStatus, Reading, Snapshot
from podgpu.views.json import encode
from tests.cluster.fleet import Fleet, plain
from tests.cluster.nodes import card, node_name, snapshot, tenant
from tests.patience import PATIENCE
from tests.tree import SETTINGS

SIZE = int(os.environ.get("PODGPU_DARK_NODES", "6"))  # `make dark` takes a thousand
INTERVAL, REMEMBER = 15.0, 7200.0
HANG_SECONDS = 0.05
LONG = 58.0  # seconds that agents are gone: more than three intervals
PLAYS = (
    "dark: none",
    "dark: half stopped",
    "dark: all stopped",
    "dark: all stopped for an hour",
    "dark: one of them cut off",
    "dark: all cut off",
    "dark: half slow",
    "dark: half stuck on old numbers",
    "dark: half lie",
    "dark: half without a driver",
    "dark: none ever answered",
    "dark: all forgotten",
)


def node_snapshot(number: int, version: int = 0) -> Snapshot:
    """Two cards of one pod each, of which one idles; on the first node, a third that is lost and one with an XID."""
    gpu = Gpu(uuid=f"GPU-{number}-0", index=0, model="NVIDIA H200", multiprocessors=132)
    busy = card("", tenant(f"ml/train-{number}"), gpu=gpu)
    idle = card("", tenant(f"lab/idle-{number}", idle=True), gpu=_gpu(number, 1))
    more: tuple[Card, ...] = ()
    if number == 0:
        raised = (Reading("xid_last_code", 79.0), Reading("xid_last_timestamp_seconds", 1_700_000_000.0 - 60.0))
        lost = Card(gpu=_gpu(number, 2), fault=Fault(reason="lost", detail="it fell off the bus"))
        sick = card("", gpu=_gpu(number, 3))
        more = (lost, Card(gpu=sick.gpu, readings=(*sick.readings, *raised), balance=sick.balance))
    return snapshot(node_name(number), busy, idle, *more, version=version)


def _gpu(number: int, index: int) -> Gpu:
    return Gpu(uuid=f"GPU-{number}-{index}", index=index, model="NVIDIA H200", multiprocessors=132)


def document(number: int, version: int = 0) -> bytes:
    return encode(conclude(node_snapshot(number, version), SETTINGS, has_books=False))


def blind(number: int) -> bytes:
    """An agent that runs, on a node without a driver."""
    down = PartStatus(name="nvml", up=False, fault=Fault(reason="library_not_found", call="nvmlInit"))
    nothing = Snapshot(node=node_name(number), taken_at=1.0, interval_seconds=5.0, version="1.0", parts=(down,))
    return encode(conclude(nothing, SETTINGS))


class _Pods:
    def __init__(self, urls: list[str]) -> None:
        self.targets = tuple(NodeTarget("agent", (url,), node_name(number)) for number, url in enumerate(urls))

    async def find(self) -> Discovered:
        return Discovered(self.targets)

    async def close(self) -> None:
        """Nothing is open."""


@contextmanager
def _set_clock() -> Iterator[list[float]]:
    """Let readers see a time that the test sets ahead."""
    ahead = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + ahead[0], time=lambda: time.time() + ahead[0])
    modules = (loop_module, node_reader)
    for module in modules:
        module.time = clock  # type: ignore[attr-defined]
    try:
        yield ahead
    finally:
        for module in modules:
            module.time = time  # type: ignore[attr-defined]


class _Client:
    """Waits shortly for agents that never answer in time, and with patience for all others: no machine is too slow."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._patient, self._short = DirectClient(timeout=PATIENCE), DirectClient(timeout=HANG_SECONDS)

    async def get(self, url: str, etag: str = "") -> FetchedDocument:
        at = url.partition("/api/")[0]
        is_silent = self._fleet.tricks.get(self._fleet.urls.index(at)) in ("hang", "slow")
        return await (self._short if is_silent else self._patient).get(url, etag)

    def forget(self, url: str) -> None:
        self._patient.forget(url)
        self._short.forget(url)

    async def close(self) -> None:
        await self._patient.close()
        await self._short.close()


@asynccontextmanager
async def _reading(fleet: Fleet) -> AsyncIterator[ClusterLoop]:
    client, turn = _Client(fleet), asyncio.Lock()
    loop = ClusterLoop(
        _Pods(fleet.urls),
        lambda target: AgentReader(client, target.urls[0], target.node, turn=turn),
        interval=INTERVAL,
        settings=SETTINGS,
        remember=REMEMBER,
        name="rig",
    )
    try:
        yield loop
    finally:
        await loop.close()
        await client.close()


def _lies(number: int) -> str | bytes:
    """Another node, nonsense, an error, and nothing at all, by turns."""
    return (plain(document(number + 1)), plain(b"nonsense"), plain(b"no", "500 Oops"), "close")[number % 4]


def _tricks(play: str) -> dict[int, str | bytes]:
    what = play.removeprefix("dark: ")
    some = [1] if what.startswith("one") else range(SIZE) if what.startswith(("all", "none ever")) else range(SIZE // 2)
    if "lie" in what:
        return {number: _lies(number) for number in some}
    if "driver" in what:
        return {number: plain(blind(number)) for number in some}
    if what in ("none", "half stuck on old numbers"):
        return {}
    return dict.fromkeys(some, "slow" if "slow" in what else "hang" if "cut off" in what else "close")


async def played(play: str) -> Cluster:
    """Read once while all is well, then as the play says, and return what is published after a while."""
    tricks = _tricks(play)
    with _set_clock() as ahead:
        async with Fleet(SIZE, document, tricks if "ever" in play else {}) as fleet, _reading(fleet) as loop:
            await loop.round()
            fleet.tricks = tricks
            fleet.hang_up()
            ahead[0] += (REMEMBER if "forgotten" in play else REMEMBER / 2 if "an hour" in play else 0.0) + LONG
            fleet.change(range(SIZE // 2, SIZE) if "old numbers" in play else range(SIZE))
            await loop.round()
            ahead[0] += 0.0 if "forgotten" not in play else INTERVAL
            await loop.round()
            return loop.cluster
