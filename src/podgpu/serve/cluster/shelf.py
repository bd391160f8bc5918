"""What was rendered of each node, kept until the node changes."""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from typing import Generic, TypeVar
from weakref import ReferenceType, ref

from podgpu import log
from podgpu.model import ClusterNode
from podgpu.model.cluster import set_aside

BREATH_SECONDS = 0.005  # after so much work, others get their turn

T = TypeVar("T")


class Pace:
    """Lets others run now and then: a thousand nodes take seconds to render."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    async def breathe(self) -> None:
        if time.monotonic() - self._began > BREATH_SECONDS:
            await asyncio.sleep(0)
            self._began = time.monotonic()


class Shelf(Generic[T]):
    """What is there can be taken at any time: while nodes are rendered, some are newer than others.

    A node is the same object for as long as nothing about it changes. None is kept alive here. `version` grows with
    every change.
    """

    def __init__(self, make: Callable[[ClusterNode], T]) -> None:
        self._make = make
        self._kept: dict[str, tuple[ReferenceType[ClusterNode], T]] = {}
        self.version = 0
        self._unfit: set[str] = set()

    @property
    def made(self) -> Collection[T]:
        """In the order of the nodes."""
        return [made for _, made in self._kept.values()]

    def clear(self) -> None:
        self._kept.clear()
        self.version += 1

    async def update(self, nodes: Sequence[ClusterNode]) -> None:
        pace = Pace()
        for node in nodes:
            before = self._kept.get(node.name)
            if before is None or before[0]() is not node:
                self._kept[node.name] = ref(node), self._made(node)
                self.version += 1
                await pace.breathe()
        if list(self._kept) != [node.name for node in nodes]:
            self._kept = {node.name: self._kept[node.name] for node in nodes}
            self._unfit &= self._kept.keys()
            self.version += 1

    def _made(self, node: ClusterNode) -> T:
        """Whatever is in a node's document, the others are shown."""
        try:
            made = self._make(node)
        except Exception as error:
            if node.name not in self._unfit:
                self._unfit.add(node.name)
                log.error("a node cannot be shown; please report this", node=node.name, error=error)
            return self._make(set_aside(node, error))
        self._unfit.discard(node.name)
        return made
