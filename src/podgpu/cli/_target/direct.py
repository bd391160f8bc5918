"""A cluster read by this very command, without a server in between."""

import asyncio
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from typing import Any, TypeVar

from podgpu.assembly.cluster import OpenCluster, open_cluster
from podgpu.cli._target.progress import waiting
from podgpu.cluster.store.options import StoreOptions
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.model import Cluster, Snapshot
from podgpu.numbers import count, duration, integer

T = TypeVar("T")

# For the first answers of all nodes; what comes later is shown when it comes.
FIRST_SECONDS = 15.0
STORE_SECONDS = 15.0  # beyond the store's own patience, for what Kubernetes says
FULL_SECONDS = 15.0
CLOSE_SECONDS = 3.0
_LOOK_SECONDS = 0.05
_DOCS = "docs/report.md says what to do"
NODES = "nodes"  # the part that lists them


class DirectTarget:
    """The loop that reads it runs in a thread of its own. A node that answers late is shown when it does."""

    player = None
    is_one_node = False

    def __init__(self, config: Config) -> None:
        """Raise UserError if nothing answers: there would be nothing to show."""
        store = config.of(StoreOptions)
        self._events = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._events.run_forever, daemon=True)
        self._thread.start()
        try:
            self._opened = self._ask(_opened(config)).result()
        except BaseException:
            self._stop()
            raise
        until = time.monotonic() + (store.timeout + STORE_SECONDS if store.url else FIRST_SECONDS)
        try:
            with waiting(self._progress):
                while not self._opened.loop.ready and time.monotonic() < until:
                    time.sleep(_LOOK_SECONDS)
            if store.url:
                self._check_store()
            else:
                self._check_nodes()
        except BaseException:
            self.close()
            raise

    @property
    def cluster(self) -> Cluster:
        return self._opened.loop.cluster

    def changed(self, seen: Cluster, seconds: float) -> Cluster:
        waiting = self._ask(self._opened.loop.changed(seen))
        try:
            return waiting.result(seconds)
        except NotYet:
            waiting.cancel()
            return seen

    def full(self, node: str) -> Snapshot:
        try:
            return self._ask(self._opened.loop.full(node)).result(FULL_SECONDS)
        except NotYet:
            raise UserError(f"the agent of node {node} does not answer within {duration(FULL_SECONDS)}") from None

    def past(self, at: float) -> Cluster:
        raise UserError("this command reads the nodes itself and keeps no past; give --url of a podgpu cluster")

    def close(self) -> None:
        try:
            self._ask(self._opened.close()).result(CLOSE_SECONDS)
        except NotYet:
            pass  # the process ends anyway
        finally:
            self._stop()

    def _check_store(self) -> None:
        """Without an answer it would seem that no pod holds a GPU, or that all pods use theirs."""
        part = next((part for part in self.cluster.parts if part.name == "store"), None)
        if not self._opened.loop.ready or part is None:
            raise UserError(f"store_late: no answer in time; {_DOCS}")
        if part.fault is not None and (not part.up or part.fault.reason == "store_empty"):
            raise UserError(f"{part.fault.reason}: {part.fault.detail}; {_DOCS}")

    def _check_nodes(self) -> None:
        """A cluster without GPUs is none if it could not be asked for them."""
        if self.cluster.nodes:
            return
        if not self._opened.loop.ready:
            raise UserError("no answer in time; check the address of the API server, and the network in between")
        down = {part.name: part.fault for part in self.cluster.parts if part.fault and not part.up}
        if down:
            name = NODES if NODES in down else next(iter(down))  # that one knows which right is missing
            raise UserError(f"{name}: {down[name].reason}: {down[name].detail}; docs/cluster.md says what to do")

    def _progress(self) -> str:
        known = sum(node.snapshot is not None for node in self.cluster.nodes)
        return f"reading the cluster: {integer(known)} of {count(len(self.cluster.nodes), 'node')}"

    def _ask(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._events)

    def _stop(self) -> None:
        self._events.call_soon_threadsafe(self._events.stop)
        self._thread.join(CLOSE_SECONDS)
        if not self._thread.is_alive():
            self._events.close()


async def _opened(config: Config) -> OpenCluster:
    opened = open_cluster(config)
    await opened.check()
    return opened
