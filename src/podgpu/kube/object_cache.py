"""Objects of one kind by UID, from lists and events. No I/O; bad input is counted, never raised."""

from abc import ABC, abstractmethod
from collections import Counter
from typing import Generic, TypeVar

import msgspec

from podgpu.kube.api import MALFORMED, OBJECT_BYTES, ApiStatus

MOST_GRAVES = 10_000
MOST_ITEMS = 500_000  # of a cluster

T = TypeVar("T")


class WatchedEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class BookmarkMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class Bookmark(msgspec.Struct):
    metadata: BookmarkMetadata


class CachedObject(msgspec.Struct, Generic[T], frozen=True):
    """`version` is 0 if it could not be read: then the order of arrival counts. `item` is None if nobody wants it."""

    version: int
    uid: str
    item: T | None


_decode_event = msgspec.json.Decoder(WatchedEvent).decode
_decode_bookmark = msgspec.json.Decoder(Bookmark).decode
_decode_status = msgspec.json.Decoder(ApiStatus).decode


class ObjectCache(ABC, Generic[T]):
    """Takes no more than `most` items, each of at most `largest` bytes. `excess` counts those left out since a list."""

    most = MOST_ITEMS
    largest = OBJECT_BYTES

    def __init__(self) -> None:
        self.excess = 0
        self.version = ""  # where a watch goes on
        self.errors: Counter[str] = Counter()
        self._items: dict[str, T] = {}
        self._ordered: tuple[T, ...] = ()
        self._is_changed = False
        self._versions: dict[str, int] = {}
        # A UID never comes back: an event about it after its end is late.
        self._graves: dict[str, None] = {}

    @abstractmethod
    def decoded(self, data: bytes | msgspec.Raw) -> CachedObject[T] | None:
        """Decode an object. Return None for one that does not belong here. May raise what MALFORMED lists."""

    @abstractmethod
    def place(self, item: T) -> tuple[str, ...]:
        """Return what items are sorted by."""

    def items(self) -> tuple[T, ...]:
        """Return the same tuple for as long as nothing changes, so that a reader can skip its work."""
        if self._is_changed:
            found = tuple(sorted(self._items.values(), key=self.place))
            self._ordered = self._ordered if found == self._ordered else found
            self._is_changed = False
        return self._ordered

    def read(self, data: bytes | msgspec.Raw) -> CachedObject[T] | None:
        """Decode an object. Return None if it is malformed, too large or does not belong here."""
        if memoryview(data).nbytes > self.largest:
            self.errors["too_large"] += 1
            return None
        try:
            known = self.decoded(data)
        except MALFORMED:
            known = None
        if known is None:
            self.errors["garbage"] += 1
        return known

    def replace(self, listed: list[CachedObject[T]], version: str, excess: int = 0) -> None:
        """Take a list as the truth: what is not in it is gone. `excess` are those that it leaves out."""
        self.excess = excess
        self._items = {known.uid: known.item for known in listed if known.item is not None}
        self._is_changed = True
        self._versions = {known.uid: known.version for known in listed if known.item is not None}
        self._graves.clear()
        self.version = version

    def is_old(self, version: str) -> bool:
        """Say whether a list of that version is older than what is known."""
        return 0 < number(version) < number(self.version)

    def apply(self, line: bytes) -> ApiStatus | None:
        """Apply a line of a watch. Return the server's error if the line holds one."""
        try:
            event = _decode_event(line)
            if event.type == "ERROR":
                return _decode_status(event.object)
            if event.type == "BOOKMARK":
                self._advance(_decode_bookmark(event.object).metadata.resource_version)
                return None
        except MALFORMED:
            self.errors["garbage"] += 1
            return None
        self._news(event)
        return None

    def _news(self, event: WatchedEvent) -> None:
        if event.type not in ("ADDED", "MODIFIED", "DELETED"):
            self.errors["garbage"] += 1
            return
        known = self.read(event.object)
        if known is None:
            return
        if event.type == "DELETED":
            self._bury(known.uid)
        else:
            self._keep(known)
        self._advance(str(known.version))

    def _keep(self, new: CachedObject[T]) -> None:
        uid = new.uid
        is_late = uid in self._versions and 0 < new.version <= self._versions[uid]
        if is_late or uid in self._graves:
            return
        if new.item is None:
            self._drop(uid)
            return
        if len(self._items) >= self.most and uid not in self._items:
            self.excess += 1
            return
        self._versions[uid] = new.version
        if self._items.get(uid) != new.item:
            self._items[uid] = new.item
            self._is_changed = True

    def _bury(self, uid: str) -> None:
        self._drop(uid)
        self._graves[uid] = None
        if len(self._graves) > MOST_GRAVES:
            del self._graves[next(iter(self._graves))]

    def _drop(self, uid: str) -> None:
        self._versions.pop(uid, None)
        if self._items.pop(uid, None) is not None:
            self._is_changed = True

    def _advance(self, version: str) -> None:
        if number(version) > number(self.version):
            self.version = version


def number(version: str) -> int:
    """Return the version as a number, or 0 if it is none. Versions are compared in no other way."""
    return int(version) if version.isascii() and version.isdigit() and len(version) < 20 else 0
