"""Where the nodes can be read: at addresses that the user gave, or at those of pods that the API server knows."""

import asyncio
from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from podgpu.model import Fault, PartStatus
from podgpu.sources import Whereabouts
from podgpu.sources.dcgm import NAME as DCGM

NONE_FOUND = "no_exporter"


class Place(Struct, frozen=True):
    """Where a node is read. `node` is empty if only its address is known."""

    origin: str  # one of ORIGINS
    urls: tuple[str, ...]  # several only for dcgm-exporters
    node: str = ""
    stands_in: bool = False  # shown only where nobody before it has fresh numbers of the node


class Found(Struct, frozen=True):
    places: tuple[Place, ...]
    parts: tuple[PartStatus, ...] = ()


class Survey(Protocol):
    async def find(self) -> Found: ...

    async def close(self) -> None: ...


class GivenAgents:
    """The agents at addresses that the user gave."""

    def __init__(self, urls: Iterable[str]) -> None:
        self._found = Found(tuple(Place("agent", (url,)) for url in dict.fromkeys(urls)))

    async def find(self) -> Found:
        return self._found

    async def close(self) -> None:
        """Nothing is open."""


class PodSurvey:
    """Agents by their pods, and dcgm-exporters on the nodes without one."""

    def __init__(self, agents: Whereabouts, exporters: Whereabouts) -> None:
        self._agents = agents
        self._exporters = exporters

    async def find(self) -> Found:
        agents, fault = await self._agents.find()
        places: dict[str, Place] = {}
        for url, node in agents.items():  # the oldest pod of a node comes first
            places.setdefault(node, Place("agent", (url,), node))
        parts = [_part("agents", fault)]
        exporters, fault = await self._exporters.find()
        parts.append(_part("exporters", fault))
        pages: dict[str, tuple[str, ...]] = {}
        for url, node in exporters.items():
            if node not in places:
                pages[node] = (*pages.get(node, ()), url)
        places |= {node: Place(DCGM, urls, node) for node, urls in pages.items()}
        return Found(tuple(places.values()), tuple(parts))

    async def close(self) -> None:
        await self._agents.close()
        await self._exporters.close()


class BackedSurvey:
    """Agents, and a store for the nodes whose agent cannot be read, or that have none.

    Exporters are asked only about nodes that the store does not know either.
    """

    def __init__(self, agents: Survey, store: Survey) -> None:
        self._agents = agents
        self._store = store

    async def find(self) -> Found:
        found, stored = await asyncio.gather(self._agents.find(), self._store.find())
        known = {place.node for place in stored.places}
        agents = [place for place in found.places if place.origin == "agent"]
        exporters = [place for place in found.places if place.origin != "agent" and place.node not in known]
        others = [replace(place, stands_in=True) for place in stored.places]
        parts = (*map(_without_lack, found.parts), *stored.parts)
        return Found((*agents, *others, *exporters), parts)

    async def close(self) -> None:
        await self._agents.close()
        await self._store.close()


def _without_lack(part: PartStatus) -> PartStatus:
    """Beside a store, nothing is missing where there is none of them."""
    is_lack = part.fault is not None and part.fault.reason == NONE_FOUND
    return replace(part, fault=None) if is_lack else part


def _part(name: str, fault: Fault | None) -> PartStatus:
    """Having none of them is no failure: nobody needs both."""
    is_up = fault is None or fault.reason == NONE_FOUND
    return PartStatus(name=name, up=is_up, fault=fault)
