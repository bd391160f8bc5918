"""The events of a node: its snapshot, then merge patches. docs/api.md describes them."""

from collections.abc import Sequence
from typing import Any

import msgspec

from podgpu.model import Snapshot
from podgpu.serve.gzip_parts import BodyPart
from podgpu.serve.pages import NodePages
from podgpu.serve.routes import NodeFeed
from podgpu.views import json

Object = dict[str, Any]

_ABSENT = object()


class NodeChanges:
    def __init__(self, feed: NodeFeed, pages: NodePages) -> None:
        self._feed = feed
        self._pages = pages
        self._last: tuple[Snapshot, Object] | None = None

    @property
    def state(self) -> Snapshot:
        return self._feed.snapshot

    async def changed(self, seen: Snapshot) -> Snapshot:
        return await self._feed.changed(seen)

    async def document(self, state: Snapshot) -> Sequence[BodyPart]:
        return (BodyPart(self._pages.json(state, gzipped=False).body),)

    async def change(self, before: Snapshot, after: Snapshot) -> Sequence[Sequence[BodyPart]]:
        last, new = self._last, json.plain(after)
        old = last[1] if last is not None and last[0] is before else json.plain(before)
        self._last = after, new  # the next change starts from it
        return ((BodyPart(msgspec.json.encode(changes(old, new))),),)

    def forget(self) -> None:
        self._last = None


def changes(before: Object, after: Object) -> Object:
    """Return what turns one into the other: a JSON merge patch (RFC 7396), with one addition.

    An object laid upon an array changes elements by their number; an array of another length comes whole.
    Null removes a key. It is never a value: what is unknown is absent from our documents.
    """
    found: Object = {}
    for key, new in after.items():
        old = before.get(key, _ABSENT)
        if old != new:
            found[key] = _change(old, new)
    return found | dict.fromkeys(before.keys() - after.keys())


def _change(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return changes(old, new)
    if _are_alike(old, new):
        pairs = enumerate(zip(old, new, strict=True))
        return {str(number): changes(before, after) for number, (before, after) in pairs if before != after}
    return new


def _are_alike(old: Any, new: Any) -> bool:
    """Whether both are lists of as many objects."""
    return (
        isinstance(old, list)
        and isinstance(new, list)
        and len(old) == len(new)
        and all(isinstance(item, dict) for item in (*old, *new))
    )
