"""What HAMi's library keeps for one container, as it lies in a file. Reads bytes and nothing else.

A tenant can write every one of them. Whatever they are, `parse` returns something plausible or raises `BadRegion`.

Numbers are little-endian. After the cards' UUIDs and limits come 1024 slots, one for each process, those in use first;
then the number of those in use. Newer files have a version, wider slots and the time of the last kernel. There are
five layouts: two without a version, 1.1, 1.2, and one of HAMi 2.8.1 that also says 1.1 and differs in size.
"""

import re
import struct
from collections.abc import Callable, Iterator
from typing import TypeAlias

from msgspec import Struct

MAGIC = 19920718
MOST_CARDS, UUID_BYTES, ALL_SLOTS = 16, 96, 1024
MOST_SLOTS = 256  # a card has no room for more contexts
MOST_BYTES = 1 << 44  # no card has as much
MOST_SECONDS = 1 << 33  # a time after this is none
PERCENT = 100
PID, FREE = 4, 0  # in a slot
SM, LAST_KERNEL = 16, 16

_UUID = re.compile(rb"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Read: TypeAlias = Callable[[int, int], bytes]  # (offset, length) -> at most so many bytes


class BadRegion(Exception):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RegionLayout(Struct, frozen=True, kw_only=True):
    """Where things are in a file. `cards` is the offset of their number, `memory_at` that of the memory in a slot.

    The others are sizes: of a slot, and of what it says of one card's memory and activity. Activity of size 0 is not
    written. `versions` are empty where the file has no version.
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
    """What a process has of one card: bytes, and the percentage of time that it used the multiprocessors.

    The oldest files do not have that percentage.
    """

    context: int
    module: int
    buffer: int
    total: int
    sm: int | None


class Slot(Struct, frozen=True, kw_only=True):
    """`pid` is the process's on the node. The uses are in the order of the cards."""

    pid: int
    uses: tuple[SlotUse, ...]


class Region(Struct, frozen=True, kw_only=True):
    """`refused` counts the slots with more memory than a card can have."""

    cards: tuple[RegionCard, ...]
    slots: tuple[Slot, ...] = ()
    refused: int = 0
    last_kernel_at: float | None = None


def parse(size: int, read: Read) -> Region:
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
    if not 0 <= count <= MOST_SLOTS:
        raise BadRegion("processes")
    found = list(_slots(_piece(read, layout.slots, count * layout.slot), layout, len(cards)))
    slots = tuple(slot for slot in found if slot)
    return Region(
        cards=cards,
        slots=slots,
        refused=len(found) - len(slots),
        last_kernel_at=_time(_long(tail, LAST_KERNEL)) if layout.versions else None,
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
    """Yield those in use; None for one that is not believed."""
    for start in range(0, len(data), layout.slot):
        if _int(data, start + layout.status) != FREE:
            uses = tuple(_use(data, start, layout, index) for index in range(cards))
            most = max(max(use.context, use.module, use.buffer, use.total) for use in uses)
            yield None if most > MOST_BYTES else Slot(pid=_int(data, start + PID), uses=uses)


def _use(data: bytes, start: int, layout: RegionLayout, index: int) -> SlotUse:
    context, module, buffer, _, total = struct.unpack_from(
        "<5Q", data, start + layout.memory_at + index * layout.memory
    )
    sm = _long(data, start + layout.activities + index * layout.activity + SM) if layout.activity else None
    return SlotUse(
        context=context,
        module=module,
        buffer=buffer,
        total=total,
        sm=None if sm is None else min(sm, PERCENT),
    )


def _time(seconds: int) -> float | None:
    return float(seconds) if 0 < seconds < MOST_SECONDS else None


def _int(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 4], "little", signed=True)


def _long(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 8], "little")
