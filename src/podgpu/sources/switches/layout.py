"""What the driver's calls look like in memory. The layouts are the same in all of `BRANCHES`.

Three values are dangerous and must not be changed: with records of less than 32 bytes the driver writes past the end of
the buffer, it dereferences a subdevice of 0, and it takes a notification for an address.
"""

import struct

BRANCHES = frozenset({535, 545, 550, 555, 560, 565, 570, 575, 580, 590, 595})
FIRST_PROMPT_BRANCH = 545  # reads the firmware's log 30 times a second; those before, once

FREE, CONTROL, ALLOC, MAP, CARDS, VERSION = 0x29, 0x2A, 0x2B, 0x4E, 200, 210

CLIENT, DEVICE, SUBDEVICE, MEMORY, EVENT_BUFFER = 0x41, 0x80, 0x2080, 0x90CE, 0x90CD
ID_INFO, GPU_TIME, BIND, ENABLE, TELL = 0x205, 0x2080_0403, 0x2080_1238, 0x90CD_0101, 0x90CD_0102

# The handles are ours to choose. A client is a name space of its own.
DEVICE_HANDLE, SUBDEVICE_HANDLE, HEADER_HANDLE, RECORDS_HANDLE, BUFFER_HANDLE = range(0x50D6_0001, 0x50D6_0006)

RECORD_BYTES = 32
RECORDS = 65_536  # 2 MiB: 20 s of the busiest log that was recorded
HEADER_BYTES = 4096
PARAMETER_BYTES = 256  # of any class: the driver copies as many as it expects

ALLOC_CALL = struct.Struct("<IIIIQII")  # client, parent, object, class, parameters, their size, status
CONTROL_CALL = struct.Struct("<IIIIQII")  # client, object, command, flags, parameters, their size, status
MAP_CALL = struct.Struct("<IIIIQQQIIiI")  # client, device, memory, -, offset, size, address, status, flags, fd, -
FREE_CALL = struct.Struct("<IIII")  # client, parent, object, status
VERSION_CALL = struct.Struct("<II64s")  # command, reply, text
VERSION_QUERY = ord("2")
CARD = struct.Struct("<B3xIBBBxHHIHxx4QI10sxx")  # valid, PCI domain, …, GPU id, …, minor, …
MOST_CARDS = 32
READ_ONLY = 1
UNWRITTEN = 0xDEAD_BEEF  # a status that the driver did not touch
RETRY = frozenset({0x03, 0x66})

HEADER = struct.Struct("<IIQQ")  # next to read, next to write, count, dropped
RECORD = struct.Struct("<HHIBBHIIHBBQ")  # type, -, -, event, -, sequence, context, PID, -, GI, CI, nanoseconds
TYPES = frozenset({2, 134})
TYPE_WITHOUT_MIG = 134  # has the upper half of a PID in place of the instances
START, END = 6, 7
NO_INSTANCE = 0xFF
NO_PID = 0xFFFF_FFFF


def device(instance: int) -> bytes:
    return struct.pack("<I52x", instance)


def memory(size: int) -> bytes:
    """System memory, cached, read-only for user space."""
    cached, read_only, any_node = 1 << 29, 1 << 22, -1
    return struct.pack("<I20xII32xQ48xi4x", 0x706F6467, cached, read_only, size, any_node)


def event_buffer() -> bytes:
    """All other fields are 0, above all the notification."""
    return struct.pack("<16xII28xI4xII4x", RECORD_BYTES, RECORDS, SUBDEVICE_HANDLE, HEADER_HANDLE, RECORDS_HANDLE)


def bind() -> bytes:
    """Request starts and ends, of all users that the agent may see."""
    simple, no_filter, all_users, no_reason = 1, 0, 1, 0
    return struct.pack("<IIIIB3xI", BUFFER_HANDLE, RECORD_BYTES, simple, no_filter, all_users, no_reason)


def enable(*, on: bool) -> bytes:
    """A full buffer keeps the oldest records, and counts those it drops."""
    return struct.pack("<B3xI", on, 1)
