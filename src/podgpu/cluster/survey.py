"""Where the nodes can be read: at addresses that the user gave, or at those of pods that the API server knows."""

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

from podgpu.model import Fault, PartStatus
from podgpu.sources import Whereabouts
from podgpu.sources.dcgm import NAME as DCGM


class Place(Struct, frozen=True):
    """Where a node is read. `node` is empty if only its address is known."""

    origin: str  # one of ORIGINS
    urls: tuple[str, ...]  # several only for dcgm-exporters
    node: str = ""


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


def _part(name: str, fault: Fault | None) -> PartStatus:
    """Having none of them is no failure: nobody needs both."""
    is_up = fault is None or fault.reason == "no_exporter"
    return PartStatus(name=name, up=is_up, fault=fault)
