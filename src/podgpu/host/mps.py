"""What shows that a process belongs to MPS: the program that it runs, or the pipe directory that it has mounted.

The name of a process shows nothing: the kernel takes it from the link that it was started by. A user who starts `su`
or `sudo` by a link named after another program has a process of root with that name.

Clients and server meet in a directory of the host. The device plugin mounts it into the pods that it gives a share to;
no other pod can mount a directory of the host without being trusted with the host itself.
"""

import os
import re
import stat
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from math import inf
from pathlib import PurePosixPath
from typing import TypeAlias

from msgspec import Struct

from podgpu.host.proc_stat import STAT, read_bytes, read_stat
from podgpu.model import Holder

DAEMON = "nvidia-cuda-mps"  # the name of its control daemon, as the kernel cuts it
PROGRAMS = frozenset({"nvidia-cuda-mps-control", "nvidia-cuda-mps-server"})
_STATUS_BYTES = 4096
_OTHERS_MAY = stat.S_ISUID | stat.S_ISGID | stat.S_IWGRP | stat.S_IWOTH

# Where device plugins and DRA drivers keep it: folders of the host that only root can make.
_PIPE_DIRECTORIES = re.compile(
    r"(?:/run/nvidia/mps|/tmp/nvidia-mps|/var/lib/kubelet/plugins/[^/]+/mps)(?:/.*)?", re.DOTALL
)
_ABOVE_PIPE_DIRECTORIES = re.compile(
    r"/|/run(?:/nvidia)?|/tmp|/var(?:/lib(?:/kubelet(?:/plugins(?:/[^/]+)?)?)?)?", re.DOTALL
)
_ESCAPED = re.compile(r"\\([0-7]{3})")
_MOST_BYTES = 1 << 20  # of a list of mounts; more than any real one has
_MOST_LINES = 4096
_MOST_PLACES = 16  # of a filesystem; more than any node has

# A tenant makes as many processes with the daemon's name, and as many mounts, as it likes. So much is read in a cycle,
# and the rest in the next ones.
PROCESSES_IN_A_CYCLE = 256
BYTES_IN_A_CYCLE = 4 << 20
BELIEVED_SECONDS = 60.0  # a process hardly ever gets another mount after it has begun

Places: TypeAlias = Mapping[str, list[tuple[str, str]]]  # by filesystem: a path in it, and where the host has it
_Process: TypeAlias = tuple[int, int]  # PID and start time


def runs_mps(folder: str) -> bool:
    """Whether a process of root runs a program of MPS that only root can have started.

    Its file belongs to root, no other user can write it, and it does not make others root. The file cannot be seen
    without the right to trace the process. Then all its user ids must be root's: under `su`, one is the caller's.
    """
    path = f"{folder}/exe"
    try:
        file, name = os.stat(path), os.readlink(path)  # noqa: PTH115, PTH116 - as all paths here
    except PermissionError:
        return _is_roots_alone(folder)
    except OSError:
        return False
    program = PurePosixPath(name.removesuffix(" (deleted)")).name
    return program in PROGRAMS and file.st_uid == 0 and not file.st_mode & _OTHERS_MAY


def _is_roots_alone(folder: str) -> bool:
    """Whether its real, effective, saved and file system user ids are all root's."""
    try:
        lines = read_bytes(f"{folder}/status", _STATUS_BYTES).split(b"\n")
    except OSError:
        return False
    return any(line.split() == [b"Uid:", b"0", b"0", b"0", b"0"] for line in lines)


class _KnownProof(Struct, frozen=True):
    read_at: float
    namespace: str  # that of its mounts; empty if it cannot be seen
    found: str | None


class MpsProofs:
    """What shows that processes belong to MPS. The work of each cycle is limited, but not the number of processes.

    A proof is remembered by PID and start time for as long as the process is asked for. Processes in the same mount
    namespace share it. If more are new than a cycle reads, the owners take turns, each with its oldest process first:
    so nobody can long delay what others have to show.
    """

    def __init__(self, prefix: str, is_roots_daemon: Callable[[int], bool], clock: Callable[[], float]) -> None:
        self._prefix = prefix
        self._is_roots_daemon = is_roots_daemon
        self._clock = clock
        self._known: dict[_Process, _KnownProof] = {}

    def of(self, holders: Iterable[Holder]) -> dict[int, str | None]:
        """Return the proofs by PID, as in `Holder`. A process that has not had its turn is left out."""
        asked = {(holder.pid, holder.start_time): holder for holder in holders if holder.start_time is not None}
        now = self._clock()
        self._known = {process: known for process, known in self._known.items() if process in asked}
        fresh = {process for process, known in self._known.items() if now - known.read_at < BELIEVED_SECONDS}
        if due := {process: holder for process, holder in asked.items() if process not in fresh}:
            self._read(self._in_turn(due)[:PROCESSES_IN_A_CYCLE], fresh, now)
        return {pid: known.found for (pid, _), known in self._known.items()}

    def _read(self, due: Iterable[_Process], fresh: Iterable[_Process], now: float) -> None:
        host = places(_mountinfo(f"{self._prefix}1"))
        shared = {self._known[process].namespace: self._known[process].found for process in fresh}
        left = BYTES_IN_A_CYCLE
        for process in due:
            folder, before = f"{self._prefix}{process[0]}", self._known.get(process)
            namespace, found = "", before.found if before else None
            parent = _parent(folder, process)
            if parent is None:
                pass  # it has ended, and keeps what it has shown
            elif self._is_roots_daemon(process[0]) or self._is_roots_daemon(parent):
                found = "root"
            elif (namespace := _namespace(folder)) and namespace in shared:
                found = shared[namespace]
            else:
                mounts = _mountinfo(folder)
                found = shared[namespace] = pipe_directory(mounts, host)
                left -= len(mounts)
            self._known[process] = _KnownProof(now, namespace, found)
            if left <= 0:
                break

    def _in_turn(self, due: Mapping[_Process, Holder]) -> list[_Process]:
        """Put the first process of each owner before the second of any. New ones come before those read before."""
        read_at = {process: known.read_at for process, known in self._known.items()}
        oldest = sorted(due, key=lambda process: (read_at.get(process, -inf), process[1]))
        turns: defaultdict[object, count[int]] = defaultdict(count)
        turn = {process: next(turns[_owner(due[process])]) for process in oldest}
        return sorted(oldest, key=turn.__getitem__)


def _owner(holder: Holder) -> tuple[object, ...]:
    return holder.kind, holder.owner.pod_uid if holder.owner else None, holder.user if holder.kind == "host" else None


def _parent(folder: str, process: _Process) -> int | None:
    """Return the parent's PID; None if the process has ended, also if another has its PID by now."""
    try:
        stat = read_stat(read_bytes(f"{folder}/stat", STAT))
    except (OSError, ValueError, IndexError):
        return None
    return stat.parent if stat.start_time == process[1] else None


def _namespace(folder: str) -> str:
    """Return the mount namespace of a process; empty without the right to trace it."""
    try:
        return os.readlink(f"{folder}/ns/mnt")  # noqa: PTH115 - as all paths here
    except OSError:
        return ""


def _mountinfo(folder: str) -> str:
    """Return the mounts of a process; nothing if they cannot be read."""
    try:
        with open(f"{folder}/mountinfo", "rb") as file:  # noqa: PTH123 - as all paths here
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def places(host: str) -> Places:
    """Return where pipe directories can be in the host's filesystems, by the mountinfo of its first process.

    Most mounts of a node are volumes of pods. No pipe directory is in them, so they need not be compared.
    """
    found: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for filesystem, root, at in _mounts(host):
        is_near = _ABOVE_PIPE_DIRECTORIES.fullmatch(at) or _PIPE_DIRECTORIES.fullmatch(at)
        if is_near and len(known := found[filesystem]) < _MOST_PLACES and (root, at) not in known:
            known.append((root, at))
    return found


def pipe_directory(mounts: str, host: Places) -> str | None:
    """Return the host's path of the pipe directory, by the mountinfo of a process and the host's `places`."""
    paths = (
        f"{at.rstrip('/')}{below}"
        for filesystem, path, _ in _mounts(mounts)
        for root, at in host.get(filesystem, ())
        if (below := _below(path, root)) is not None
    )
    return next(filter(_PIPE_DIRECTORIES.fullmatch, paths), None)


def _below(path: str, root: str) -> str | None:
    above = root.rstrip("/")
    return path.removeprefix(above) if f"{path}/".startswith(f"{above}/") else None


def _mounts(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the filesystem of each mount, the path in it that is mounted, and where."""
    for line in text.split("\n", _MOST_LINES)[:_MOST_LINES]:
        fields = line.split(" ", 5)
        if len(fields) == 6:
            yield fields[2], _unescaped(fields[3]), _unescaped(fields[4])


def _unescaped(path: str) -> str:
    """The kernel writes spaces and the like as octal numbers."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), path) if "\\" in path else path
