"""Where the nodes can be read: at addresses that the user gave, or at those of pods that the API server knows."""

import asyncio
from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from podgpu.cluster.node_allocations import NO_AGENT
from podgpu.kube.endpoints import NONE_FOUND, NOT_BELIEVED
from podgpu.model import Fault, PartStatus
from podgpu.model.kube import grouped
from podgpu.sources.dcgm import NAME as DCGM
from podgpu.sources.protocols import PageFinder


class NodeTarget(Struct, frozen=True):
    """Where a node is read. `node` is empty if only its address is known."""

    origin: str  # one of ORIGINS
    urls: tuple[str, ...]  # several only for dcgm-exporters
    node: str = ""
    is_fallback: bool = False  # shown only where no agent has fresh numbers of the node


class Discovered(Struct, frozen=True):
    targets: tuple[NodeTarget, ...]
    parts: tuple[PartStatus, ...] = ()


class Discovery(Protocol):
    async def find(self) -> Discovered: ...

    async def close(self) -> None: ...


class StaticDiscovery:
    """The agents at addresses that the user gave."""

    def __init__(self, urls: Iterable[str]) -> None:
        self._found = Discovered(tuple(NodeTarget("agent", (url,)) for url in dict.fromkeys(urls)))

    async def find(self) -> Discovered:
        return self._found

    async def close(self) -> None:
        """Nothing is open."""


class PodDiscovery:
    """Agents by their pods, and dcgm-exporters on the nodes without an agent."""

    def __init__(self, agents: PageFinder, exporters: PageFinder) -> None:
        self._agents = agents
        self._exporters = exporters

    async def find(self) -> Discovered:
        agents, no_agents = await self._agents.find()
        targets: dict[str, NodeTarget] = {}
        for url, node in agents.items():  # the oldest pod of a node comes first
            targets.setdefault(node, NodeTarget("agent", (url,), node))
        exporters, no_exporters = await self._exporters.find()
        parts = [_agents(no_agents, is_any=bool(agents)), _exporters(no_exporters)]
        pages = grouped((url for url, node in exporters.items() if node not in targets), exporters.__getitem__)
        targets |= {node: NodeTarget(DCGM, tuple(urls), node) for node, urls in pages.items()}
        return Discovered(tuple(targets.values()), tuple(parts))

    async def close(self) -> None:
        await self._agents.close()
        await self._exporters.close()


class BackedDiscovery:
    """Agents, and a store for the nodes whose agent cannot be read, or that have none.

    Exporters are asked only about nodes that the store does not know either.
    """

    def __init__(self, agents: Discovery, store: Discovery) -> None:
        self._agents = agents
        self._store = store

    async def find(self) -> Discovered:
        found, stored = await asyncio.gather(self._agents.find(), self._store.find())
        known = {target.node for target in stored.targets}
        agents = [target for target in found.targets if target.origin == "agent"]
        exporters = [target for target in found.targets if target.origin != "agent" and target.node not in known]
        others = [replace(target, is_fallback=True) for target in stored.targets]
        parts = (*map(_without_none_found, found.parts), *stored.parts)
        return Discovered((*agents, *others, *exporters), parts)

    async def close(self) -> None:
        await self._agents.close()
        await self._store.close()


def _without_none_found(part: PartStatus) -> PartStatus:
    """With a store, it is no fault that there are no agents."""
    is_none_found = part.fault is not None and part.fault.reason == NO_AGENT
    return replace(part, fault=None) if is_none_found else part


def _agents(fault: Fault | None, *, is_any: bool) -> PartStatus:
    """A cluster without agents is no failure, but less is known of it."""
    is_searched = fault is None or fault.reason in (NONE_FOUND, NOT_BELIEVED)
    shown = replace(fault, reason=NO_AGENT) if fault and is_searched and not is_any else fault
    return PartStatus(name="agents", up=is_searched, fault=shown)


def _exporters(fault: Fault | None) -> PartStatus:
    """Exporters only stand in for agents. Where both are missing, that is said of the agents."""
    shown = None if fault and fault.reason == NONE_FOUND else fault
    return PartStatus(name="exporters", up=shown is None or shown.reason == NOT_BELIEVED, fault=shown)
