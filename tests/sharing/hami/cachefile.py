"""Writes the files of HAMi's library, all five layouts, at the places where its headers put the numbers."""

import struct
from dataclasses import dataclass, field
from pathlib import Path

POD = "00000000-1111-4222-8333-444444444444"
OTHER_POD = "99999999-1111-4222-8333-444444444444"
ONE, TWO = (f"GPU-00000000-0000-4000-8000-00000000000{n}" for n in range(2))
GIB = 1 << 30


@dataclass
class Process:
    """`cards` are (context, module, buffer, total, SM percent) of each card."""

    pid: int
    cards: list[tuple[int, int, int, int, int]]
    status: int = 1


@dataclass(frozen=True)
class Offsets:
    """As a compiler lays out the library's structs. Of a slot: its memory, activity and status, and their sizes."""

    size: int
    count: int
    uuids: int
    memory: int
    cores: int
    slots: int
    slot: int
    used: int
    used_size: int
    util: int | None
    util_size: int
    status: int
    process_count: int
    last_kernel: int | None = None
    version: tuple[int, int] | None = None


_V1 = (2008952, 56, 64, 1600, 1728, 1856, 1960, 8, 64, 1160, 48, 1928, 2008896, 2008912)
LAYOUTS = {
    "first": Offsets(804680, 48, 56, 1592, 1720, 1848, 784, 8, 40, None, 0, 776, 804664),
    "old": Offsets(1197896, 48, 56, 1592, 1720, 1848, 1168, 8, 40, 776, 24, 1160, 1197880),
    "1.1": Offsets(*_V1, (1, 1)),
    "2.8.1": Offsets(2008984, 88, 96, 1632, 1760, 1888, 1960, 16, 64, 1168, 48, 1936, 2008928, 2008944, (1, 1)),
    "1.2": Offsets(*_V1, (1, 2)),
}


@dataclass
class CacheFile:
    """`version` is written where it is given, else the layout's own."""

    uuids: list[str | bytes] = field(default_factory=lambda: [ONE])
    memory: list[int] = field(default_factory=lambda: [8 * GIB])
    cores: list[int] = field(default_factory=lambda: [30])
    processes: list[Process] = field(default_factory=list)
    last_kernel: int = 1_760_000_000
    magic: int = 19920718
    version: tuple[int, int] | None = None
    count: int | None = None
    process_count: int | None = None

    def new(self) -> bytes:
        return self.bytes_of("1.1")

    def old(self) -> bytes:
        return self.bytes_of("old")

    def bytes_of(self, layout: str) -> bytes:
        at = LAYOUTS[layout]
        data = bytearray(at.size + 1)  # the library writes one byte behind its struct
        struct.pack_into("<i", data, 0, self.magic)
        if at.version:
            struct.pack_into("<2i", data, 4, *(self.version or at.version))
        self._cards(data, at)
        for index, process in enumerate(self.processes):
            self._process(data, at, at.slots + index * at.slot, process)
        struct.pack_into("<i", data, at.process_count, self._process_count)
        if at.last_kernel:
            struct.pack_into("<Q", data, at.last_kernel, self.last_kernel)
        return bytes(data)

    def _process(self, data: bytearray, at: Offsets, start: int, process: Process) -> None:
        struct.pack_into("<2i", data, start, 1, process.pid)
        struct.pack_into("<i", data, start + at.status, process.status)
        for card, (context, module, buffer, total, sm) in enumerate(process.cards):
            struct.pack_into("<5Q", data, start + at.used + card * at.used_size, context, module, buffer, 0, total)
            if at.util is not None:
                struct.pack_into("<Q", data, start + at.util + card * at.util_size + 16, sm)

    @property
    def _process_count(self) -> int:
        return len(self.processes) if self.process_count is None else self.process_count

    def _cards(self, data: bytearray, at: Offsets) -> None:
        struct.pack_into("<Q", data, at.count, len(self.uuids) if self.count is None else self.count)
        for index, uuid in enumerate(self.uuids):
            struct.pack_into("96s", data, at.uuids + index * 96, uuid if isinstance(uuid, bytes) else uuid.encode())
        struct.pack_into(f"<{len(self.memory)}Q", data, at.memory, *self.memory)
        struct.pack_into(f"<{len(self.cores)}Q", data, at.cores, *self.cores)


def folder(root: Path, pod: str = POD, container: str = "main") -> Path:
    return root / "usr/local/vgpu/containers" / f"{pod}_{container}"


def write(root: Path, data: bytes, pod: str = POD, container: str = "main", name: str = "x.cache") -> Path:
    path = folder(root, pod, container) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
