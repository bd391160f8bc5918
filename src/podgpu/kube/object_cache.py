"""Objects of one kind by UID, from lists and watch events. No I/O; bad input is counted, never raised."""

from collections import Counter
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from podgpu.kube.api import MALFORMED, OBJECT_BYTES, ApiStatus
from podgpu.kube.pod_object import Uid

MOST_DELETED = 10_000
MOST_ITEMS = 500_000  # of a cluster

T = TypeVar("T")


class WatchedEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class ObjectMetadata(msgspec.Struct, rename="camel", kw_only=True):
    uid: Uid | None = None
    resource_version: str = ""


class Bookmark(msgspec.Struct):
    metadata: ObjectMetadata


class CachedObject(msgspec.Struct, Generic[T], frozen=True):
    """`version` is 0 if it could not be read: then the order of arrival counts. `item` is None if it is not needed."""

    version: int
    uid: str
    item: T | None


def cached(metadata: ObjectMetadata, item: T | None) -> CachedObject[T] | None:
    return CachedObject(version_number(metadata.resource_version), metadata.uid, item) if metadata.uid else None


_decode_event = msgspec.json.Decoder(WatchedEvent).decode
_decode_bookmark = msgspec.json.Decoder(Bookmark).decode
_decode_status = msgspec.json.Decoder(ApiStatus).decode


class ObjectStore(Generic[T]):
    """Objects by UID, at most `most`. `excess` counts those left out since the last list."""

    def __init__(self, order: Callable[[T], tuple[str, ...]], most: int) -> None:
        self.most = most
        self.excess = 0
        self._order = order
        self._objects: dict[str, T] = {}
        self._ordered: tuple[T, ...] = ()
        self._is_changed = False

    def items(self) -> tuple[T, ...]:
        """Return the same tuple for as long as nothing changes, so that a reader can skip its work."""
        if self._is_changed:
            found = tuple(sorted(self._objects.values(), key=self._order))
            self._ordered = self._ordered if found == self._ordered else found
            self._is_changed = False
        return self._ordered

    def put(self, uid: str, item: T) -> None:
        if len(self._objects) >= self.most and uid not in self._objects:
            self.excess += 1
        elif self._objects.get(uid) != item:
            self._objects[uid] = item
            self._is_changed = True

    def drop(self, uid: str) -> None:
        if self._objects.pop(uid, None) is not None:
            self._is_changed = True

    def replace_all(self, objects: dict[str, T], excess: int = 0) -> None:
        """Replace the objects by those of a list. `excess` is how many it leaves out."""
        self._objects = objects
        self.excess = excess
        self._is_changed = True


class ObjectCache(ObjectStore[T]):
    """Objects of one kind as a list and a watch report them, each of at most `largest` bytes.

    `decode` returns None for an object that does not belong here. It may raise what MALFORMED lists.
    """

    def __init__(
        self,
        decode: Callable[[bytes | msgspec.Raw], CachedObject[T] | None],
        order: Callable[[T], tuple[str, ...]],
        *,
        most: int = MOST_ITEMS,
        largest: int = OBJECT_BYTES,
    ) -> None:
        super().__init__(order, most)
        self._decode = decode
        self._largest = largest
        self.version = ""  # from which a watch resumes
        self.errors: Counter[str] = Counter()
        self._versions: dict[str, int] = {}
        # A UID never comes back: an event about a deleted UID is late.
        self._deleted: dict[str, None] = {}

    def read(self, data: bytes | msgspec.Raw) -> CachedObject[T] | None:
        """Decode an object. Return None if it is malformed, too large or does not belong here."""
        if memoryview(data).nbytes > self._largest:
            self.errors["too_large"] += 1
            return None
        try:
            known = self._decode(data)
        except MALFORMED:
            known = None
        if known is None:
            self.errors["garbage"] += 1
        return known

    def replace(self, listed: list[CachedObject[T]], version: str, excess: int = 0) -> None:
        """Replace the objects by those of a list, `excess` of which are left out. What is not in it is gone."""
        items = {known.uid: known.item for known in listed if known.item is not None}
        self.replace_all(items, excess)
        self._versions = {known.uid: known.version for known in listed if known.uid in items}
        self._deleted.clear()
        self.version = version

    def is_old(self, version: str) -> bool:
        """Whether a list of that version is older than what is known."""
        return 0 < version_number(version) < version_number(self.version)

    def apply(self, line: bytes) -> ApiStatus | None:
        """Apply a line of a watch. Return the server's error if the line holds one."""
        try:
            event = _decode_event(line)
            match event.type:
                case "ERROR":
                    return _decode_status(event.object)
                case "BOOKMARK":
                    self._advance(_decode_bookmark(event.object).metadata.resource_version)
                case "ADDED" | "MODIFIED" | "DELETED":
                    self._apply_change(event)
                case _:
                    self.errors["garbage"] += 1
        except MALFORMED:
            self.errors["garbage"] += 1
        return None

    def _apply_change(self, event: WatchedEvent) -> None:
        known = self.read(event.object)
        if known is None:
            return
        if event.type == "DELETED":
            self._delete(known.uid)
        else:
            self._keep(known)
        self._advance(str(known.version))

    def _keep(self, new: CachedObject[T]) -> None:
        is_late = 0 < new.version <= self._versions.get(new.uid, 0)
        if is_late or new.uid in self._deleted:
            return
        if new.item is None:
            self.drop(new.uid)
        else:
            self.put(new.uid, new.item)
            if new.uid in self._objects:
                self._versions[new.uid] = new.version

    def _delete(self, uid: str) -> None:
        self.drop(uid)
        self._deleted[uid] = None
        if len(self._deleted) > MOST_DELETED:
            del self._deleted[next(iter(self._deleted))]

    def drop(self, uid: str) -> None:
        self._versions.pop(uid, None)
        super().drop(uid)

    def _advance(self, version: str) -> None:
        if version_number(version) > version_number(self.version):
            self.version = version


def version_number(version: str) -> int:
    """Return a resource version as a number, or 0 if it is not one. Versions are compared in no other way."""
    return int(version) if version.isascii() and version.isdigit() and len(version) < 20 else 0
