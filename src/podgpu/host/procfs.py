"""Whose the processes on a GPU are, by /proc."""

import os
import time
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path

from msgspec import Struct

from podgpu.host import cgroup
from podgpu.model import Fault, Holder

# How long a process's cgroup is believed: it can be moved, but hardly ever is.
BELIEVED_SECONDS = 60.0
EVIDENCE = 512

NO_HOST_PID = Fault(reason="no_host_pid", detail="process attribution off: run the pod with hostPID: true")

# Fixed in the kernel's interface: the inode numbers of the first namespace of each type.
_INITIAL_PID = 4026531836
_INITIAL_CGROUP = 4026531835

_STAT = 1024
_CGROUP = 65536
_PF_EXITING = 0x4
_GONE = (FileNotFoundError, ProcessLookupError, NotADirectoryError)

_Judge = Callable[[str], cgroup.Verdict]


class _Stat(Struct, frozen=True):
    command: str
    start_time: int
    zombie: bool
    exiting: bool


class _Known(Struct, frozen=True):
    seal: tuple[int, int]
    start_time: int
    read_at: float
    holder: Holder


class Procfs:
    name = "procfs"
    """Remembers each process by (PID, start time) for as long as its PID is asked for."""

    def __init__(self, root: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._prefix = f"{root}/"
        self._clock = clock
        self._known: dict[int, _Known] = {}

    def holders(self, pids: Iterable[int]) -> dict[int, Holder]:
        """Say of each PID whose it is.

        While `fault` holds, a number may mean one process here and another to the driver. Then all are unknown.
        """
        known, self._known = self._known, {}
        if self.fault():
            return {pid: _unknown(pid, NO_HOST_PID.reason) for pid in pids}
        private = self._namespace("cgroup") not in (None, _INITIAL_CGROUP)
        # The processes of one container have one text.
        judge = cache(partial(cgroup.judge, private=private))
        now = self._clock()
        return {pid: self._holder(pid, known.get(pid), now, judge) for pid in pids}

    def pod_uid(self, pid: int) -> str | None:
        """Say in which pod a process is, by what its cgroup is now."""
        try:
            text = _content(f"{self._prefix}{pid}/cgroup", _CGROUP).decode("utf-8", "replace")
        except OSError:
            return None
        owner = None if self.fault() else cgroup.judge(text).owner
        return owner.pod_uid if owner else None

    def fault(self) -> Fault | None:
        """Tell when the PIDs of `root` are not those that the driver speaks of.

        The driver gives PIDs in the reader's own namespace, and only those of processes inside it (before R535: the
        machine's). That is of use if the namespace is the node's. It is not when

        - `root` belongs to an outer namespace, as a mounted /host/proc does: then the reader has a PID in both;
        - or the namespace is not the machine's first one and its PID 1 lives in the reader's own pod or container.

        A node that is itself a container (kind) has no first namespace either. There PID 1 is the node's init, which
        lives in no pod, and nothing is wrong. Whether the PIDs asked for exist proves nothing: small numbers exist
        in every namespace.
        """
        if self._in_two_namespaces():
            return NO_HOST_PID
        if self._namespace("pid") in (None, _INITIAL_PID):
            return None
        return NO_HOST_PID if self._first_process_is_ours() else None

    def _holder(self, pid: int, known: _Known | None, now: float, judge: _Judge) -> Holder:
        try:
            if known is None or not self._is_current(pid, known, now):
                known = self._read(pid, known, now, judge)
        except _GONE:
            return _unknown(pid, "hidden" if self._hides() else "exited")
        except PermissionError:
            return _unknown(pid, "hidden")
        except (OSError, ValueError, IndexError):
            return _unknown(pid, "unreadable")
        self._known[pid] = known
        return known.holder

    def _is_current(self, pid: int, known: _Known, now: float) -> bool:
        """Whether what is known still holds, without the cost of having the kernel write `stat` again."""
        if now - known.read_at >= BELIEVED_SECONDS:
            return False
        return _seal(os.stat(f"{self._prefix}{pid}/stat")) == known.seal  # noqa: PTH116

    def _read(self, pid: int, known: _Known | None, now: float, judge: _Judge) -> _Known:
        """Read both files through one descriptor of the folder: it never leads to a later process of that PID."""
        folder = os.open(f"{self._prefix}{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            seal = _seal(os.stat("stat", dir_fd=folder))
            stat = _stat(_content("stat", _STAT, folder))
            if known and known.start_time == stat.start_time and (stat.zombie or stat.exiting):
                return known
            text = _content("cgroup", _CGROUP, folder).decode("utf-8", "replace")
            user = os.fstat(folder).st_uid
        finally:
            os.close(folder)
        holder = _judged(pid, stat, judge(text), user)
        return _Known(seal, stat.start_time, now, holder)

    def _hides(self) -> bool:
        """With hidepid=2 others' processes seem not to exist. Neither does PID 1, which always does."""
        return _exists(self._root / "self") and not _exists(self._root / "1")

    def _namespace(self, kind: str) -> int | None:
        try:
            link = str((self._root / "self" / "ns" / kind).readlink())
            return int(link.removeprefix(f"{kind}:[").removesuffix("]"))
        except (OSError, ValueError):
            return None

    def _in_two_namespaces(self) -> bool:
        try:
            status = _content(f"{self._prefix}self/status", _CGROUP)
        except OSError:
            return False
        numbers = next((line for line in status.split(b"\n") if line.startswith(b"NSpid:")), b"")
        return len(numbers.split()) > 2

    def _first_process_is_ours(self) -> bool:
        try:
            first = _content(f"{self._prefix}1/cgroup", _CGROUP).decode("utf-8", "replace")
            ours = _content(f"{self._prefix}self/cgroup", _CGROUP).decode("utf-8", "replace")
        except OSError:
            return False
        verdict = cgroup.judge(first)
        neighbour = verdict.reason == cgroup.PRIVATE and verdict.owner is not None
        return first == ours or verdict.kind == "pod" or neighbour


def _judged(pid: int, stat: _Stat, verdict: cgroup.Verdict, user: int) -> Holder:
    kind, owner, reason = verdict.kind, verdict.owner, verdict.reason
    if stat.zombie:
        kind, owner, reason = "unknown", None, "zombie"
    elif stat.exiting and owner is None:
        # cgroup v1 says `/` of every process on its way out.
        kind, reason = "unknown", "exited"
    return Holder(
        pid=pid,
        kind=kind,
        start_time=stat.start_time,
        owner=owner,
        cgroup=_evidence(verdict.line),
        reason=reason,
        command=_evidence(stat.command),
        user=user,
    )


def _unknown(pid: int, reason: str) -> Holder:
    return Holder(pid=pid, kind="unknown", reason=reason)


def _evidence(line: str) -> str:
    """A cgroup's or a command's name is the container's choice: nothing of it may steer a terminal or a log."""
    shown = line[:EVIDENCE]
    return shown if shown.isprintable() else "".join(filter(str.isprintable, shown))


def _seal(status: os.stat_result) -> tuple[int, int]:
    """What marks a file as this process's: the kernel makes it anew for each process, with a new number and time."""
    return status.st_ino, status.st_mtime_ns


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def _stat(line: bytes) -> _Stat:
    """The name in field 2 may hold spaces and parentheses, so count from its last one."""
    end = line.rindex(b")")
    command = line[line.index(b"(") + 1 : end].decode("utf-8", "replace")
    fields = line[end + 1 :].split(None, 20)
    state, flags = fields[0], int(fields[6])
    return _Stat(command, int(fields[19]), state in (b"Z", b"X", b"x"), bool(flags & _PF_EXITING))


def _content(path: str, size: int, folder: int | None = None) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)
