"""Processes and threads by their `stat` in /proc, and the threads that live on after the first has ended."""

import os
from itertools import chain, islice

from msgspec import Struct

GONE = (FileNotFoundError, ProcessLookupError, NotADirectoryError)
STAT = 1024  # bytes; more than the file has
_PF_EXITING = 0x4
# Indexes of fields behind the name: the third field comes first.
_EXIT_SIGNAL = 38 - 3
TICKS = os.sysconf("SC_CLK_TCK")  # per second
# How many threads are read, for all processes of a cycle and for each process. A tracer can keep any number of
# threads from being reaped, so the search goes on in the next cycle.
_IN_A_CYCLE, _OF_A_PROCESS = 10_000, 2_000
_MOST_SEARCHES = 1024


class Stat(Struct, frozen=True):
    """One thread's state. Its process may have others that live on after it."""

    command: str
    start_time: int
    zombie: bool
    exiting: bool
    threads: int
    parent: int

    @property
    def is_over(self) -> bool:
        return self.zombie or self.exiting


class LiveThreads:
    """Searches for living threads. The work of each cycle is limited, but not the number of threads."""

    def __init__(self) -> None:
        self._left = _IN_A_CYCLE
        self._reached: dict[tuple[int, int], int] = {}  # by PID and start time

    def renew(self) -> None:
        """Begin a cycle."""
        self._left = _IN_A_CYCLE

    def living(self, folder: int, pid: int, stat: Stat) -> str | None:
        """Return the path of one below the folder of its process; empty if none lives, None if not all were read."""
        if stat.threads <= 1:
            return ""
        tasks = os.open("task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            return self._search(tasks, (pid, stat.start_time))
        finally:
            os.close(tasks)

    def _search(self, tasks: int, process: tuple[int, int]) -> str | None:
        """Check the newest first, and the others from where the last search ended."""
        names = os.listdir(tasks)
        most = min(_OF_A_PROCESS, self._left)
        newest = most // 2
        older = len(names) - newest
        begin = self._reached.pop(process, 0) if older > 0 else 0
        begin = begin if begin < older else 0
        order = chain(reversed(names[max(0, older) :]), names[begin : max(0, older)])
        for name in islice(order, most):
            self._left -= 1
            try:
                if not read_stat(read_bytes(f"{name}/stat", STAT, tasks)).is_over:
                    return f"task/{name}/"
            except GONE:
                continue
        if begin == 0 and len(names) <= most:
            return ""
        if len(self._reached) >= _MOST_SEARCHES:
            self._reached.clear()
        self._reached[process] = begin + most - newest
        return None


def read_stat(line: bytes) -> Stat:
    """Parse a line. Fields count from the last parenthesis: the name in field 2 may hold spaces and parentheses."""
    end = line.rindex(b")")
    command = line[line.index(b"(") + 1 : end].decode("utf-8", "replace")
    fields = line[end + 1 :].split(None, 20)
    state, flags = fields[0], int(fields[6])
    is_zombie, is_exiting = state in (b"Z", b"X", b"x"), bool(flags & _PF_EXITING)
    return Stat(command, int(fields[19]), is_zombie, is_exiting, threads=int(fields[17]), parent=int(fields[1]))


def is_thread(line: bytes) -> bool:
    """Whether a PID is that of a thread, for which /proc has a folder too. Its end sends no signal: field 38 is -1."""
    fields = line[line.rfind(b")") + 1 :].split(None, _EXIT_SIGNAL + 1)
    return fields[_EXIT_SIGNAL : _EXIT_SIGNAL + 1] == [b"-1"]


def read_bytes(path: str, size: int, folder: int | None = None) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)


def read_text(path: str, size: int, folder: int | None = None) -> str:
    return read_bytes(path, size, folder).decode("utf-8", "replace")
