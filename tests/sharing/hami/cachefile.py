"""Writes the files of HAMi's library, both layouts, at the places where its headers put the numbers."""

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


@dataclass
class CacheFile:
    uuids: list[str | bytes] = field(default_factory=lambda: [ONE])
    memory: list[int] = field(default_factory=lambda: [8 * GIB])
    cores: list[int] = field(default_factory=lambda: [30])
    processes: list[Process] = field(default_factory=list)
    last_kernel: int = 1_760_000_000
    magic: int = 19920718
    version: tuple[int, int] = (1, 1)
    count: int | None = None
    process_count: int | None = None

    def new(self) -> bytes:
        data = bytearray(2008952)
        struct.pack_into("<3i", data, 0, self.magic, *self.version)
        self._cards(data, 56, 64, 1600, 1728)
        for index, process in enumerate(self.processes):
            start = 1856 + index * 1960
            struct.pack_into("<2i", data, start, index + 1, process.pid)
            struct.pack_into("<i", data, start + 1928, process.status)
            for card, (context, module, buffer, total, sm) in enumerate(process.cards):
                struct.pack_into("<5Q", data, start + 8 + card * 64, context, module, buffer, 0, total)
                struct.pack_into("<Q", data, start + 1160 + card * 48 + 16, sm)
        struct.pack_into("<i", data, 2008896, self._process_count)
        struct.pack_into("<Q", data, 2008912, self.last_kernel)
        return bytes(data)

    def old(self) -> bytes:
        data = bytearray(1197896)
        struct.pack_into("<i", data, 0, self.magic)
        self._cards(data, 48, 56, 1592, 1720)
        for index, process in enumerate(self.processes):
            start = 1848 + index * 1168
            struct.pack_into("<2i", data, start, index + 1, process.pid)
            struct.pack_into("<i", data, start + 1160, process.status)
            for card, (context, module, buffer, total, sm) in enumerate(process.cards):
                struct.pack_into("<5Q", data, start + 8 + card * 40, context, module, buffer, 0, total)
                struct.pack_into("<Q", data, start + 776 + card * 24 + 16, sm)
        struct.pack_into("<i", data, 1197880, self._process_count)
        return bytes(data)

    @property
    def _process_count(self) -> int:
        return len(self.processes) if self.process_count is None else self.process_count

    def _cards(self, data: bytearray, count: int, uuids: int, memory: int, cores: int) -> None:
        struct.pack_into("<Q", data, count, len(self.uuids) if self.count is None else self.count)
        for index, uuid in enumerate(self.uuids):
            struct.pack_into(
                "96s", data, uuids + index * 96, uuid if isinstance(uuid, bytes) else uuid.encode()
            )
        struct.pack_into(f"<{len(self.memory)}Q", data, memory, *self.memory)
        struct.pack_into(f"<{len(self.cores)}Q", data, cores, *self.cores)


def folder(root: Path, pod: str = POD, container: str = "main") -> Path:
    return root / "usr/local/vgpu/containers" / f"{pod}_{container}"


def write(root: Path, data: bytes, pod: str = POD, container: str = "main", name: str = "x.cache") -> Path:
    path = folder(root, pod, container) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
