"""Reads the files in which HAMi's library keeps the limits and the use of each container.

A tenant can write every byte of them. Whatever they hold, `parse` returns something plausible or raises `BadRegion`.

Numbers are little-endian. After the cards' UUIDs and limits come 1024 slots, one for each process, those in use first;
then the number of those in use. Newer files have a version, wider slots and the time of the last kernel. There are
five layouts: two without a version, 1.1, 1.2, and one of HAMi 2.8.1 that also says 1.1 and differs in size.
"""

import errno
import os
import re
import stat
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from podgpu.model import VirtualGpu
from podgpu.sharing.inventory import Host, Observation

MAGIC = 19920718
MOST_CARDS, UUID_BYTES, ALL_SLOTS = 16, 96, 1024
MOST_SLOTS = 256  # a card has no room for more contexts
MOST_BYTES = 1 << 44  # more than any card has
MOST_SECONDS = 1 << 33  # a later time is not believed
PERCENT = 100
PID, FREE = 4, 0  # in a slot
SM, LAST_KERNEL = 16, 16

_UUID = re.compile(rb"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Read: TypeAlias = Callable[[int, int], bytes]  # (offset, length) -> at most `length` bytes


class BadRegion(Exception):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RegionLayout(Struct, frozen=True, kw_only=True):
    """Offsets and sizes in a file. `cards` is the offset of their number, `memory_at` that of the memory in a slot.

    `slot` is the size of a slot, `memory` and `activity` are the sizes of what it says about one card; 0 if it does not
    say it. `versions` are empty if the file has no version.
    """

    cards: int
    slot: int
    memory: int
    activity: int
    memory_at: int = 8
    versions: tuple[tuple[int, int], ...] = ()

    @property
    def uuids(self) -> int:
        return self.cards + 8

    @property
    def limits(self) -> int:
        return self.uuids + MOST_CARDS * UUID_BYTES

    @property
    def slots(self) -> int:
        return self.limits + 2 * MOST_CARDS * 8

    @property
    def tail(self) -> int:
        return self.slots + ALL_SLOTS * self.slot

    @property
    def activities(self) -> int:
        """Between memory and activity is the memory that HAMi's monitor found itself."""
        return self.memory_at + MOST_CARDS * (self.memory + 8)

    @property
    def status(self) -> int:
        return self.activities + MOST_CARDS * self.activity


# A layout is recognised by the size of the file. The library seeks to the end of its struct and writes a byte there, so
# a file is one byte longer than the struct.
LAYOUTS = {
    804_681: RegionLayout(cards=48, slot=784, memory=40, activity=0),
    1_197_897: RegionLayout(cards=48, slot=1168, memory=40, activity=24),
    2_008_953: RegionLayout(cards=56, slot=1960, memory=64, activity=48, versions=((1, 1), (1, 2))),
    # HAMi 2.8.1 alone: it has a second lock before the cards, and a counter in each slot before the memory.
    2_008_985: RegionLayout(cards=88, slot=1960, memory=64, activity=48, memory_at=16, versions=((1, 1),)),
}


class RegionCard(Struct, frozen=True, kw_only=True):
    """`cores` is a percentage. It is 100 as well where no limit was set, and None where it makes no sense."""

    uuid: str
    memory: int | None
    cores: int | None


class SlotUse(Struct, frozen=True, kw_only=True):
    """A process's use of one card: bytes, and the percentage of time that it used the multiprocessors.

    The oldest files do not have that percentage.
    """

    context: int
    module: int
    buffer: int
    total: int
    sm: int | None


class Slot(Struct, frozen=True, kw_only=True):
    """`pid` is the process's PID on the node. The uses are in the order of the cards."""

    pid: int
    uses: tuple[SlotUse, ...]


class Region(Struct, frozen=True, kw_only=True):
    """`refused` counts the slots with more memory than a card can have."""

    cards: tuple[RegionCard, ...]
    slots: tuple[Slot, ...] = ()
    refused: int = 0
    last_kernel_at: float | None = None


def parse(size: int, read: Read, most_slots: int = MOST_SLOTS) -> Region:
    """Read a file of `size` bytes in three pieces. Raises BadRegion, and nothing else."""
    layout = LAYOUTS.get(size)
    if layout is None:
        raise BadRegion("size")
    head = _piece(read, 0, layout.slots)
    _check(head, layout)
    cards = tuple(_cards(head, layout))
    if len({card.uuid for card in cards}) < len(cards):
        raise BadRegion("uuid")
    tail = _piece(read, layout.tail, size - layout.tail)
    count = _int(tail, 0)
    if not 0 <= count <= most_slots:
        raise BadRegion("processes")
    found = list(_slots(_piece(read, layout.slots, count * layout.slot), layout, len(cards)))
    slots = tuple(slot for slot in found if slot)
    last_kernel = _long(tail, LAST_KERNEL) if layout.versions else 0
    return Region(
        cards=cards,
        slots=slots,
        refused=len(found) - len(slots),
        last_kernel_at=float(last_kernel) if 0 < last_kernel < MOST_SECONDS else None,
    )


def _piece(read: Read, offset: int, length: int) -> bytes:
    data = read(offset, length)
    if len(data) != length:
        raise BadRegion("truncated")
    return data


def _check(head: bytes, layout: RegionLayout) -> None:
    if _int(head, 0) != MAGIC:
        raise BadRegion("magic")
    if layout.versions and (_int(head, 4), _int(head, 8)) not in layout.versions:
        raise BadRegion("version")


def _cards(head: bytes, layout: RegionLayout) -> Iterator[RegionCard]:
    count = _long(head, layout.cards)
    if not 1 <= count <= MOST_CARDS:
        raise BadRegion("devices")
    for index in range(count):
        start = layout.uuids + index * UUID_BYTES
        text, end, _ = head[start : start + UUID_BYTES].partition(b"\0")
        if not end or not _UUID.fullmatch(text):
            raise BadRegion("uuid")
        memory = _long(head, layout.limits + index * 8)
        cores = _long(head, layout.limits + (MOST_CARDS + index) * 8)
        yield RegionCard(
            uuid=text.decode("ascii"),
            memory=memory if 1 <= memory <= MOST_BYTES else None,
            cores=cores if 1 <= cores <= PERCENT else None,
        )


def _slots(data: bytes, layout: RegionLayout, cards: int) -> Iterator[Slot | None]:
    """Yield the slots in use; None for one that is not believed."""
    for start in range(0, len(data), layout.slot):
        if _int(data, start + layout.status) != FREE:
            uses = tuple(_use(data, start, layout, index) for index in range(cards))
            most = max(max(use.context, use.module, use.buffer, use.total) for use in uses)
            yield None if most > MOST_BYTES else Slot(pid=_int(data, start + PID), uses=uses)


def _use(data: bytes, start: int, layout: RegionLayout, index: int) -> SlotUse:
    context, module, buffer, _, total = struct.unpack_from(
        "<5Q", data, start + layout.memory_at + index * layout.memory
    )
    at = start + layout.activities + index * layout.activity + SM
    sm = min(_long(data, at), PERCENT) if layout.activity else None
    return SlotUse(context=context, module=module, buffer=buffer, total=total, sm=sm)


def _int(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 4], "little", signed=True)


def _long(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 8], "little")


# HAMi's folder, and that of Volcano's plugin since 1.12.
FOLDERS = ("usr/local/vgpu/containers", "usr/local/vgpu/vgpu/containers")
SUFFIX = ".cache"
MOST_FOLDERS = 1024
MOST_FILES = 64
# In one scan, of all files: slots that are read, divided evenly where files are many, and processes that are looked up.
# The cards of a node have no room for as many processes.
MOST_READ, MOST_LOOKED_UP = 32_768, 8192

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NAME = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})_([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)", re.ASCII)


def observe(host: Host) -> Observation:
    scan = CacheScan(host)
    found = sorted(scan.vgpus(), key=lambda vgpu: (vgpu.pod_uid, vgpu.container, vgpu.index))
    return Observation(vgpus=tuple(found), errors=scan.errors)


class _Found(NamedTuple):
    """A container's file."""

    region: Region
    uid: str
    container: str


class CacheScan:
    def __init__(self, host: Host) -> None:
        self.errors: Counter[str] = Counter()
        self._host = host
        self._pods: dict[int, str | None] = {}

    def vgpus(self) -> Iterator[VirtualGpu]:
        """A tenant may fill its files with processes. Those with few are verified first, and a process once."""
        found: list[_Found] = []
        for folder in FOLDERS:
            try:
                with _opened(str(self._host.root / folder), os.O_DIRECTORY) as parent:
                    names = self._folders(parent)
                    most = min(MOST_SLOTS, MOST_READ // max(1, len(names)))
                    found += filter(None, (self._found(parent, name, most) for name in names))
            except OSError as error:
                self._count(error)
        for region, uid, container in sorted(found, key=lambda each: len(each.region.slots)):
            yield from self._vgpus(region, uid, container)

    def _folders(self, parent: int) -> list[str]:
        names = _names(parent, MOST_FOLDERS)
        if len(names) > MOST_FOLDERS:
            self.errors["too_many_folders"] += 1
        return names[:MOST_FOLDERS]

    def _found(self, parent: int, name: str, most_slots: int) -> _Found | None:
        try:
            if (match := _NAME.fullmatch(name)) is None:
                raise BadRegion("name")
            region = _region(parent, name, most_slots)
            return _Found(region, match[1], match[2]) if region else None
        except BadRegion as error:
            self.errors[error.reason] += 1
        except OSError as error:
            self._count(error)
        return None

    def _vgpus(self, region: Region, uid: str, container: str) -> Iterator[VirtualGpu]:
        if region.refused:
            self.errors["memory"] += region.refused
        pids = {slot.pid for slot in region.slots}
        is_looked_up = len(pids | self._pods.keys()) <= MOST_LOOKED_UP
        if not is_looked_up:
            self.errors["processes"] += 1
        slots = [slot for slot in region.slots if is_looked_up and self._is_in_pod(slot.pid, uid)]
        # If no process could be verified, nothing is known. If there is no process, nothing is used.
        is_known = bool(slots) or not (region.slots or region.refused)
        for index, card in enumerate(region.cards):
            yield _vgpu(region, slots if is_known else None, uid, container, index, card)

    def _is_in_pod(self, pid: int, uid: str) -> bool:
        if pid not in self._pods:
            self._pods[pid] = self._host.pod_uid(pid) if pid > 0 else None
        found = self._pods[pid]
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
    """The library writes it only if cores are limited. 100 may mean no limit, and then 0 that it was never written."""
    known = [percent for percent in percents if percent is not None]
    if card.cores is None or len(known) < len(percents) or (card.cores == PERCENT and not any(known)):
        return None
    return min(sum(known), PERCENT) / PERCENT


def _region(parent: int, name: str, most_slots: int) -> Region | None:
    """Return None for a container whose library has not written yet."""
    with _opened(name, os.O_DIRECTORY, parent) as folder:
        names = _names(folder, MOST_FILES)
        if len(names) > MOST_FILES:
            raise BadRegion("too_many_files")
        caches = [name for name in names if name.endswith(SUFFIX)]
        if len(caches) > 1:
            raise BadRegion("several_caches")
        return _read(folder, caches[0], most_slots) if caches else None


def _read(folder: int, name: str, most_slots: int) -> Region:
    with _opened(name, 0, folder) as file:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise BadRegion("not_a_file")
        return parse(status.st_size, lambda offset, length: os.pread(file, length, offset), most_slots)


def _names(folder: int, most: int) -> list[str]:
    """List one more than there may be, so that too many can be detected."""
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in islice(entries, most + 1))


@contextmanager
def _opened(name: str, flags: int, folder: int | None = None) -> Iterator[int]:
    opened = os.open(name, _FLAGS | flags, dir_fd=folder)
    try:
        yield opened
    finally:
        os.close(opened)
