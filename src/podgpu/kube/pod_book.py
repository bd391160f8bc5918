"""The pods of a node by UID, from lists and events. No I/O; bad input is counted, never raised."""

from collections import Counter

import msgspec

from podgpu.kube.api import OBJECT_BYTES, ApiStatus
from podgpu.kube.pod_list import PodList
from podgpu.kube.pod_object import MALFORMED, decode_pod, to_pod
from podgpu.model import Pod

MOST_GRAVES = 10_000


class Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class BookmarkMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class Bookmark(msgspec.Struct):
    metadata: BookmarkMetadata


class KnownPod(msgspec.Struct, frozen=True):
    """`version` is 0 if it could not be read. Then the order of arrival counts."""

    version: int
    pod: Pod


_decode_event = msgspec.json.Decoder(Event).decode
_decode_bookmark = msgspec.json.Decoder(Bookmark).decode
_decode_status = msgspec.json.Decoder(ApiStatus).decode


class PodBook:
    """Without a `node`, the pods of all nodes."""

    def __init__(self, node: str | None) -> None:
        self.version = ""  # where a watch goes on
        self.errors: Counter[str] = Counter()
        self._node = node
        self._pods = PodList()
        self._versions: dict[str, int] = {}
        # A UID never comes back: an event about it after its end is late.
        self._graves: dict[str, None] = {}

    def pods(self) -> tuple[Pod, ...]:
        return self._pods.ordered()

    def read(self, data: bytes | msgspec.Raw) -> KnownPod | None:
        """Decode an object. Return None if it is malformed, too large or another node's."""
        if memoryview(data).nbytes > OBJECT_BYTES:
            self.errors["too_large"] += 1
            return None
        try:
            item = decode_pod(data)
        except MALFORMED:
            self.errors["garbage"] += 1
            return None
        if self._node not in (None, item.spec.node_name):
            self.errors["garbage"] += 1
            return None
        pod = to_pod(item)
        if self._node is None:
            pod = msgspec.structs.replace(pod, node=item.spec.node_name)
        return KnownPod(number(item.metadata.resource_version), pod)

    def replace(self, listed: list[KnownPod], version: str) -> None:
        """Take a list as the truth: what is not in it is gone."""
        self._pods.replace(known.pod for known in listed)
        self._versions = {known.pod.uid: known.version for known in listed}
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

    def _news(self, event: Event) -> None:
        if event.type not in ("ADDED", "MODIFIED", "DELETED"):
            self.errors["garbage"] += 1
            return
        known = self.read(event.object)
        if known is None:
            return
        if event.type == "DELETED":
            self._bury(known.pod.uid)
        else:
            self._keep(known)
        self._advance(str(known.version))

    def _keep(self, new: KnownPod) -> None:
        uid = new.pod.uid
        is_late = uid in self._versions and 0 < new.version <= self._versions[uid]
        if not is_late and uid not in self._graves:
            self._versions[uid] = new.version
            self._pods.put(new.pod)

    def _bury(self, uid: str) -> None:
        self._versions.pop(uid, None)
        self._pods.drop(uid)
        self._graves[uid] = None
        if len(self._graves) > MOST_GRAVES:
            del self._graves[next(iter(self._graves))]

    def _advance(self, version: str) -> None:
        if number(version) > number(self.version):
            self.version = version


def number(version: str) -> int:
    """Return the version as a number, or 0 if it is none. Versions are compared in no other way."""
    return int(version) if version.isascii() and version.isdigit() and len(version) < 20 else 0
