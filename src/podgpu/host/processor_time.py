"""How much processor time a process has used, by /proc."""

import os
from pathlib import Path

_TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")
_STAT = 1024
_USER, _SYSTEM = 11, 12  # fields after the name, which may hold spaces and parentheses


def processor_time_us(root: Path, pid: int) -> int | None:
    """Return the time of all threads so far, in microseconds; None if it cannot be read."""
    try:
        descriptor = os.open(f"{root}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            fields = os.read(descriptor, _STAT).rpartition(b")")[2].split(None, _SYSTEM + 1)
        finally:
            os.close(descriptor)
        return (int(fields[_USER]) + int(fields[_SYSTEM])) * _TICK_US
    except (OSError, ValueError, IndexError):
        return None
