"""A moment of the past, as a cluster: what a store held of each node then. It has no processes, claims and evidence."""

import asyncio

from podgpu import __version__
from podgpu.cluster.node_state import ReadFault, ReadState, ReadTimes, node_state
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.nodes import PART, StoreReading, read_nodes
from podgpu.cluster.store.response import MOST_PARTS, TOO_LARGE, DecodeBudget, StoreFault
from podgpu.errors import UserError
from podgpu.insight import InsightSettings, conclude_cluster, conclude_node
from podgpu.model import Cluster, ClusterNode

# Of what a cluster that is read from a store may have: it is in memory beside that one.
MOMENT_PARTS = MOST_PARTS // 4


class StoreMoments:
    """`name` is that of the cluster, `interval` the time between two of its readings."""

    def __init__(self, store: Store, settings: InsightSettings, *, name: str, interval: float) -> None:
        self._store = store
        self._settings = settings
        self._name = name
        self._interval = interval

    async def at(self, at: float) -> Cluster | None:
        """Return the cluster as it was then; None if the store has nothing of it. Raises UserError."""
        try:
            found = await read_nodes(self._store, at, DecodeBudget(MOMENT_PARTS))
        except StoreFault as fault:
            if fault.reason == TOO_LARGE:
                raise UserError("the cluster is too large for a moment of it to be read from the store") from None
            raise UserError(f"{fault.reason}: {fault.detail}") from None
        return await asyncio.to_thread(self._cluster, found, at) if found.nodes else None

    async def close(self) -> None:
        await self._store.close()

    def _cluster(self, found: StoreReading, at: float) -> Cluster:
        nodes = tuple(self._node(name, found) for name in sorted({*found.nodes, *found.faults}))
        made = Cluster(
            taken_at=at,
            version=__version__,
            name=self._name,
            interval_seconds=self._interval,
            has_store=True,
            demo=any(node.snapshot is not None and node.snapshot.demo for node in nodes),
            nodes=nodes,
        )
        return conclude_cluster(made, self._settings)

    def _node(self, name: str, found: StoreReading) -> ClusterNode:
        """A node whose last scrape was too old then was dark, and the store says why."""
        read, fault = found.nodes.get(name), found.faults.get(name)
        state = ReadState(
            origin=PART,
            snapshot=read.snapshot if read else None,
            fault=ReadFault(fault.reason, fault.detail) if fault else None,
        )
        return conclude_node(node_state(name, state, None, ReadTimes(self._interval)), self._settings)
