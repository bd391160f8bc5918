"""Finds and reads the files that HAMi's library keeps for each container, in a folder `POD UID_CONTAINER`.

HAMi names the folder, but the tenant can write anything into it, even while it is read. So nothing is followed, waited
for or mapped: a mapped file that shrinks kills the reader. Tenants can write the PIDs too, so a process counts only if
its cgroup is in the folder's pod.
"""

import errno
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from podgpu.model import VirtualGpu
from podgpu.sharing.hami.shared_region import PERCENT, BadRegion, Region, RegionCard, Slot, parse
from podgpu.sharing.inventory import Host, Observation

# HAMi's, and that of Volcano's plugin since 1.12.
FOLDERS = ("usr/local/vgpu/containers", "usr/local/vgpu/vgpu/containers")
SUFFIX = ".cache"
MOST_FOLDERS = 1024
MOST_FILES = 64

_CLOSED_IN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NAME = re.compile(
    r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})_([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)", re.ASCII
)


def observe(host: Host) -> Observation:
    look = CacheScan(host)
    return Observation(vgpus=tuple(look.vgpus()), errors=look.errors)


class CacheScan:
    def __init__(self, host: Host) -> None:
        self.errors: Counter[str] = Counter()
        self._host = host

    def vgpus(self) -> Iterator[VirtualGpu]:
        for folder in FOLDERS:
            try:
                with _opened(str(self._host.root / folder), os.O_DIRECTORY) as parent:
                    for name in self._folders(parent):
                        yield from self._folder(parent, name)
            except OSError as error:
                self._count(error)

    def _folders(self, parent: int) -> list[str]:
        names = _names(parent, MOST_FOLDERS)
        if len(names) > MOST_FOLDERS:
            self.errors["too_many_folders"] += 1
        return names[:MOST_FOLDERS]

    def _folder(self, parent: int, name: str) -> list[VirtualGpu]:
        match = _NAME.fullmatch(name)
        if match is None:
            self.errors["name"] += 1
            return []
        try:
            region = _region(parent, name)
        except BadRegion as error:
            self.errors[error.reason] += 1
        except OSError as error:
            self._count(error)
        else:
            return list(self._vgpus(region, match[1], match[2])) if region else []
        return []

    def _vgpus(self, region: Region, uid: str, container: str) -> Iterator[VirtualGpu]:
        if region.refused:
            self.errors["memory"] += region.refused
        slots = [slot for slot in region.slots if self._is_in_pod(slot.pid, uid)]
        # If no process could be verified, nothing is known. If there is no process, nothing is used.
        is_known = bool(slots) or not (region.slots or region.refused)
        for index, card in enumerate(region.cards):
            yield _vgpu(region, slots if is_known else None, uid, container, index, card)

    def _is_in_pod(self, pid: int, uid: str) -> bool:
        found = self._host.pod_uid(pid) if pid > 0 else None
        if found != uid:
            self.errors["foreign_pid" if found else "unknown_pid"] += 1
        return found == uid

    def _count(self, error: OSError) -> None:
        """A missing file or folder is no error: there may be no HAMi, or the container has just ended."""
        if error.errno != errno.ENOENT:
            self.errors["link" if error.errno in (errno.ELOOP, errno.ENOTDIR) else "unreadable"] += 1


def _vgpu(
    region: Region, slots: list[Slot] | None, uid: str, container: str, index: int, card: RegionCard
) -> VirtualGpu:
    uses = None if slots is None else [slot.uses[index] for slot in slots]
    return VirtualGpu(
        pod_uid=uid,
        container=container,
        gpu=card.uuid,
        index=index,
        memory_limit_bytes=card.memory,
        core_limit_ratio=None if card.cores is None else card.cores / PERCENT,
        memory_used_bytes=None if uses is None else sum(use.total for use in uses),
        context_bytes=None if uses is None else sum(use.context for use in uses),
        module_bytes=None if uses is None else sum(use.module for use in uses),
        buffer_bytes=None if uses is None else sum(use.buffer for use in uses),
        sm_ratio=None if uses is None else _sm_ratio(card, [use.sm for use in uses]),
        last_kernel_at=region.last_kernel_at,
        pids=tuple(sorted({slot.pid for slot in slots or ()})),
    )


def _sm_ratio(card: RegionCard, percents: Sequence[int | None]) -> float | None:
    """It is written only if there is a limit. 100 may be no limit, and then 0 may mean that it was never written."""
    known = [percent for percent in percents if percent is not None]
    if card.cores is None or len(known) < len(percents) or (card.cores == PERCENT and not any(known)):
        return None
    return min(sum(known), PERCENT) / PERCENT


def _region(parent: int, name: str) -> Region | None:
    """Return None for a container whose library has not written yet."""
    with _opened(name, os.O_DIRECTORY, parent) as folder:
        names = _names(folder, MOST_FILES)
        if len(names) > MOST_FILES:
            raise BadRegion("too_many_files")
        caches = [name for name in names if name.endswith(SUFFIX)]
        if len(caches) > 1:
            raise BadRegion("several_caches")
        return _read(folder, caches[0]) if caches else None


def _read(folder: int, name: str) -> Region:
    with _opened(name, 0, folder) as file:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise BadRegion("not_a_file")
        return parse(status.st_size, lambda offset, length: os.pread(file, length, offset))


def _names(folder: int, most: int) -> list[str]:
    """List one more than there may be, so that too many can be detected."""
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in islice(entries, most + 1))


@contextmanager
def _opened(name: str, flags: int, folder: int | None = None) -> Iterator[int]:
    opened = os.open(name, _CLOSED_IN | flags, dir_fd=folder)
    try:
        yield opened
    finally:
        os.close(opened)
