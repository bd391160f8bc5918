"""What a stream of events is about."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from podgpu.model import Snapshot
from podgpu.serve.events.patch import changes
from podgpu.serve.events.piece import Piece
from podgpu.serve.node import Node
from podgpu.serve.pages import Pages

State = TypeVar("State")


class Subject(Protocol[State]):
    """States follow each other; each has a document, and each pair of them a change."""

    @property
    def state(self) -> State:
        """The newest: the same object until there is a newer one."""

    async def changed(self, seen: State) -> State:
        """Wait for a newer state than that, and return it."""

    async def document(self, state: State) -> Sequence[Piece]:
        """All of it, as JSON in one line."""

    async def change(self, before: State, after: State) -> Sequence[Sequence[Piece]]:
        """What makes the document of one that of the other, each part of it as JSON in one line."""

    def forget(self) -> None:
        """Keep nothing: nobody reads any more."""


class NodeSubject:
    """The node's snapshots. A change is a merge patch of the document."""

    def __init__(self, node: Node, pages: Pages) -> None:
        self._node = node
        self._pages = pages
        self._known: tuple[Snapshot, dict[str, Any]] | None = None

    @property
    def state(self) -> Snapshot:
        return self._node.snapshot

    async def changed(self, seen: Snapshot) -> Snapshot:
        return await self._node.changed(seen)

    async def document(self, state: Snapshot) -> Sequence[Piece]:
        return (Piece(self._bytes(state)),)

    async def change(self, before: Snapshot, after: Snapshot) -> Sequence[Sequence[Piece]]:
        return ((Piece(msgspec.json.encode(changes(self._object(before), self._object(after)))),),)

    def forget(self) -> None:
        self._known = None

    def _bytes(self, state: Snapshot) -> bytes:
        return self._pages.json(state, gzipped=False).body

    def _object(self, state: Snapshot) -> dict[str, Any]:
        """Decode a document. The last is kept: it is the next change's `before`."""
        if self._known is None or self._known[0] is not state:
            self._known = (state, msgspec.json.decode(self._bytes(state), type=dict[str, Any]))
        return self._known[1]
