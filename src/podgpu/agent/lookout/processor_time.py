"""How much processor time the processes on a shared card use: whoever computes there has likely work for the card."""

from collections.abc import Callable, Iterable

from podgpu.ledger.account import Entry, Sheet
from podgpu.ledger.band import BY_LOOKS
from podgpu.model import Process

Known = tuple[int | None, int]  # when the process began, and its processor time so far


class ProcessorTime:
    """Asks only about cards that several share by looks. `read` returns microseconds so far, None if it cannot."""

    def __init__(self, read: Callable[[int], int | None]) -> None:
        self._read = read
        self._last: dict[int, Known] = {}

    def note(self, sheets: Iterable[Sheet]) -> None:
        """Enter the processor time since the previous cycle into the sheets."""
        before, self._last = self._last, {}
        for sheet in sheets:
            entries = [entry for entry in sheet.entries.values() if entry.running]
            if len(entries) > 1:
                for entry in entries:
                    if entry.method in BY_LOOKS:
                        entry.cpu_us = self._used(entry, before)

    def _used(self, entry: Entry, before: dict[int, Known]) -> int | None:
        """What its processes used; None if that is known of none."""
        found = [
            used for one in entry.processes if (used := self._of(one.pid, _start(one), before)) is not None
        ]
        return sum(found) if found else None

    def _of(self, pid: int, start: int | None, before: dict[int, Known]) -> int | None:
        now = self._read(pid)
        if now is None:
            return None
        self._last[pid] = start, now
        last = before.get(pid)
        return max(0, now - last[1]) if last and last[0] == start else None


def _start(process: Process) -> int | None:
    return process.holder.start_time if process.holder else None
