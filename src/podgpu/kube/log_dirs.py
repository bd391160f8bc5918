"""The node's pods by the names of the kubelet's log folders. This needs no rights except to read them.

A folder outlives its pod for a while, so a pod listed here may have ended.
"""

import asyncio
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from podgpu import log
from podgpu.kube.condition import Condition
from podgpu.kube.pod_object import pod_order
from podgpu.model import Fault, PartStatus, Pod, PodContainer

MOST_ENTRIES = 20_000
RESCAN_SECONDS = 10.0
AGAIN_SECONDS = 1.0  # between two scans at least

_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_SUBDOMAIN = r"[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?"
_UID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}"
_POD = re.compile(rf"({_LABEL})_({_SUBDOMAIN})_({_UID})")
_CONTAINER = re.compile(_LABEL)
# A link's name is cut at 255 characters. If that cuts the id, it does not match.
_LINK = re.compile(rf"({_SUBDOMAIN})_({_LABEL})_({_LABEL})-([0-9a-f]{{64}})\.log")
_LOG_FILE = re.compile(r"(\d{1,9})\.log")

Ids = dict[tuple[str, str], tuple[int, str]]  # (pod folder, container) -> (restarts, container id)


@dataclass
class Scan:
    """A single scan of the folders. `skipped` are the paths of entries that cannot be the kubelet's."""

    skipped: set[str] = field(default_factory=set)
    seen: int = 0

    @property
    def is_cut(self) -> bool:
        return self.seen > MOST_ENTRIES

    def pods(self, root: Path) -> tuple[Pod, ...]:
        folders = self._folders(root / "pods")
        ids = self._ids(root / "containers")
        found = (self._pod(folder, ids) for folder in folders)
        return tuple(sorted((pod for pod in found if pod), key=pod_order))

    def _pod(self, folder: Path, ids: Ids) -> Pod | None:
        match = _POD.fullmatch(folder.name)
        if match is None:
            self.skipped.add(str(folder))
            return None
        namespace, name, uid = match.groups()
        return Pod(
            namespace=namespace,
            name=name,
            uid=uid,
            static_hash="" if "-" in uid else uid,
            containers=tuple(self._containers(folder, ids)),
        )

    def _containers(self, folder: Path, ids: Ids) -> Iterator[PodContainer]:
        try:
            names = sorted(container.name for container in self._folders(folder))
        except OSError:
            return  # it was removed in the meantime
        for name in names:
            if _CONTAINER.fullmatch(name):
                _, container_id = ids.get((folder.name, name), (0, ""))
                yield PodContainer(name=name, container_id=container_id)
            else:
                self.skipped.add(str(folder / name))

    def _ids(self, folder: Path) -> Ids:
        """Find the ids of the newest containers. The pod's UID is in the link's target, not in its name."""
        ids: Ids = {}
        try:
            for entry in self._entries(folder):
                link = _link(entry)
                if link and link[1] >= ids.get(link[0], (0, ""))[0]:
                    ids[link[0]] = link[1:]
        except OSError:
            return {}
        return {} if self.is_cut else ids  # the newest may be among the unseen

    def _folders(self, folder: Path) -> list[Path]:
        return [Path(entry.path) for entry in self._entries(folder) if entry.is_dir(follow_symlinks=False)]

    def _entries(self, folder: Path) -> Iterator["os.DirEntry[str]"]:
        with os.scandir(folder) as entries:
            for entry in entries:
                self.seen += 1
                if self.is_cut:
                    return
                yield entry


def _link(entry: "os.DirEntry[str]") -> tuple[tuple[str, str], int, str] | None:
    """Return ((pod folder, container), restarts, container id), if name and target agree."""
    link = _LINK.fullmatch(entry.name)
    try:
        target = Path(os.readlink(entry.path)) if link else None  # noqa: PTH115 - the entry's path is a str
    except OSError:
        return None
    if link is None or target is None or len(target.parts) < 3:
        return None
    folder, container, file = target.parts[-3:]
    pod, restarts = _POD.fullmatch(folder), _LOG_FILE.fullmatch(file)
    if pod is None or restarts is None or (pod[2], pod[1], container) != link.group(1, 2, 3):
        return None
    return (folder, container), int(restarts[1]), link[4]


class LogDirs:
    name = "log-dirs"

    def __init__(self, root: Path = Path("/var/log"), *, rescan_seconds: float = RESCAN_SECONDS) -> None:
        self._condition = Condition(self.name)
        self.errors = self._condition.errors
        self._root = root
        self._rescan_seconds = rescan_seconds
        self._pods: tuple[Pod, ...] | None = None
        self._skipped: set[str] = set()
        self._wanted = asyncio.Event()

    async def run(self) -> None:
        while True:
            self._wanted.clear()
            await self.scan()
            await asyncio.sleep(min(AGAIN_SECONDS, self._rescan_seconds))
            with suppress(TimeoutError):
                async with asyncio.timeout(self._rescan_seconds - AGAIN_SECONDS):
                    await self._wanted.wait()

    def look_again(self) -> None:
        self._wanted.set()

    async def scan(self) -> None:
        """Scan once, in a thread: a disk may be slow."""
        began = time.monotonic()
        scan = Scan()
        try:
            found = await asyncio.to_thread(scan.pods, self._root)
        except OSError as error:
            self._failed(error)
            return
        self._pods = self._pods if found == self._pods else found
        if new := scan.skipped - self._skipped:  # an entry that stays from scan to scan is one error
            self.errors["name"] += len(new)
        self._skipped = scan.skipped
        self._condition.seconds = time.monotonic() - began
        detail = f"{self._root}: more than {MOST_ENTRIES} entries; the others are left out"
        self._condition.worked(Fault(reason="too_many", detail=detail) if scan.is_cut else None)

    def pods(self) -> tuple[Pod, ...] | None:
        return self._pods

    def status(self) -> PartStatus:
        return self._condition.status()

    def _failed(self, error: OSError) -> None:
        reason = {FileNotFoundError: "missing", PermissionError: "forbidden"}.get(type(error), "unreadable")
        known = self._condition.fault
        if known is None or known.reason != reason:
            log.warning("no log folders", source=self.name, reason=reason, path=self._root / "pods")
        self._condition.failed(Fault(reason=reason, detail=f"{self._root / 'pods'}: {error.strerror}"))
