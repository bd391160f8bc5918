"""The owners of processes, by /proc."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from math import inf
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from podgpu.host import cgroup, mps
from podgpu.host.proc_stat import GONE, STAT, TICKS, LiveThreads, Stat, is_thread, read_bytes, read_stat, read_text
from podgpu.model import Fault, Holder

# How long a process's cgroup is believed: a process can be moved, but hardly ever is.
BELIEVED_SECONDS = 60.0
EVIDENCE_CHARACTERS = 512

# Without a time, the process that has the PID now is meant.
ALWAYS: Mapping[int, float] = MappingProxyType({})

NO_HOST_PID = Fault(reason="no_host_pid", detail="process attribution off: run the pod with hostPID: true")

# Fixed in the kernel's interface: the inode numbers of the first namespace of each type.
_INITIAL_PID = 4026531836
_INITIAL_CGROUP = 4026531835

_CGROUP_BYTES = 65536
_WHOLE_BYTES = 1 << 20
_SMALL_BYTES = 256
_CLASSIFIED = 4096  # texts whose owner is kept
LARGEST_PID = 1 << 22

_Classify = Callable[[str], cgroup.CgroupMatch]


class _KnownProcess(Struct, frozen=True):
    """A process as it was read. `inode` and `made_at` are those of its `stat` file.

    The kernel creates that file for each process, with another number and time, so together they distinguish
    a process from the next with its PID. To read the start time each time would cost three times as much.
    """

    path: str
    inode: int
    made_at: int
    start_time: int
    read_at: float
    holder: Holder


class Procfs:
    """Remembers each process by (PID, start time) for as long as its PID is asked for."""

    name = "procfs"

    def __init__(self, root: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._prefix = f"{root}/"
        self._clock = clock
        self._known: dict[int, _KnownProcess] = {}
        self._threads = LiveThreads()
        self._mps = mps.MpsProofs(self._prefix, self._is_roots_daemon, clock)
        # The reader's own namespaces, which stay the same for as long as it runs.
        self._namespaces: dict[str, int] = {}
        self._pid_levels = 0
        self._roots: frozenset[str] | None = None
        self._knows_roots = False
        self._classify: _Classify | None = None
        self._booted_at: float | None = None

    def holders(self, pids: Iterable[int], seen_at: Mapping[int, float] = ALWAYS) -> dict[int, Holder]:
        """Return the owner of each PID.

        A process that began after its PID was seen on a card, in monotonic seconds, only reuses the PID. While there is
        a `fault`, a PID may mean different processes here and to the driver. Then all are unknown.
        """
        known, self._known = self._known, {}
        if self.fault():
            return {pid: _unknown(pid, NO_HOST_PID.reason) for pid in pids}
        self._threads.renew()
        self._booted_at = self._booted_at or self._boot()  # read once, so that no process seems to move
        classify, now, slept = self._classifier(), self._clock(), seconds_asleep()
        found = {pid: self._holder(pid, known.get(pid), now, classify) for pid in pids}
        return {
            pid: holder if has_begun(holder, seen_at.get(pid, inf) + slept) else _unknown(pid, "exited")
            for pid, holder in found.items()
        }

    def newcomer(self, pid: int) -> Holder | None:
        """Return the owner of a process that has just begun; None if it is unknown, or a thread of another process."""
        try:
            if is_thread(read_bytes(f"{self._prefix}{pid}/stat", STAT)):
                return None
        except OSError:
            return None
        holder = self._holder(pid, None, self._clock(), self._classifier())
        return None if holder.kind == "unknown" else holder

    def pids(self) -> list[int]:
        """List the living processes."""
        try:
            return [int(name) for name in os.listdir(self._prefix) if name.isdecimal()]  # noqa: PTH208 - names alone
        except OSError:
            return []

    def newest_pid(self) -> int | None:
        """Return the number that the kernel assigned last, for a process or a thread."""
        return self._number("loadavg")

    def largest_pid(self) -> int:
        return self._number("sys/kernel/pid_max") or LARGEST_PID

    def _number(self, file: str) -> int | None:
        """Return the last number in a small file."""
        try:
            return int(read_bytes(f"{self._prefix}{file}", _SMALL_BYTES).split()[-1])
        except (OSError, ValueError, IndexError):
            return None

    def pod_uid(self, pid: int) -> str | None:
        """Return the pod of a process, by its present cgroup."""
        try:
            text = read_text(f"{self._prefix}{pid}/cgroup", _CGROUP_BYTES)
        except OSError:
            return None
        owner = None if self.fault() else cgroup.classify(text, roots=self._kubelet_roots()).owner
        return owner.pod_uid if owner else None

    def mps(self, holders: Iterable[Holder]) -> dict[int, str | None]:
        """Return what shows that processes belong to MPS, by PID; those that are not looked at yet are left out."""
        return self._mps.of(holders)

    def _is_roots_daemon(self, pid: int) -> bool:
        holder = self._holder(pid, self._known.get(pid), self._clock(), self._classifier())
        is_named = (holder.kind, holder.user, holder.command) == ("host", 0, mps.DAEMON)
        return is_named and mps.runs_mps(f"{self._prefix}{pid}")

    def fault(self) -> Fault | None:
        """Return a fault if the PIDs of `root` are not those that the driver reports.

        The driver reports PIDs in the reader's own namespace, and only of processes inside it (before R535: the
        machine's PIDs). That works if the namespace is the node's. It does not work if

        - `root` belongs to an outer namespace, as a mounted /host/proc does: then the reader has a PID in both;
        - or the namespace is not the machine's first and its PID 1 lives in the reader's own pod or container.

        A node that is itself a container (kind) is not in the first namespace either. There, PID 1 is the node's
        init, which lives in no pod, and all is well. That the requested PIDs exist proves nothing: small numbers
        exist in every namespace.
        """
        is_first = self._namespace("pid") in (None, _INITIAL_PID)
        is_other = self._in_two_namespaces() or (not is_first and self._first_process_is_ours())
        return NO_HOST_PID if is_other else None

    def _holder(self, pid: int, known: _KnownProcess | None, now: float, classify: _Classify) -> Holder:
        try:
            if known is None or not _is_current(known, now):
                known = self._read(pid, known, now, classify)
        except GONE:
            return _unknown(pid, "hidden" if hides_others(self._prefix) else "exited")
        except PermissionError:
            return _unknown(pid, "hidden")
        except (OSError, ValueError, IndexError):
            return _unknown(pid, "unreadable")
        self._known[pid] = known
        return known.holder

    def _read(self, pid: int, known: _KnownProcess | None, now: float, classify: _Classify) -> _KnownProcess:
        """Read both files through a descriptor of the folder, which never leads to a later process with that PID."""
        path = f"{self._prefix}{pid}"
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            descriptor = os.open("stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
            try:
                file, stat = os.fstat(descriptor), read_stat(os.read(descriptor, STAT))
            finally:
                os.close(descriptor)
            text = read_text("cgroup", _CGROUP_BYTES, folder)
            is_sure = True
            if stat.is_over and not _outlasts(text, classify(text)):
                thread = self._threads.living(folder, pid, stat)
                if thread:
                    # The kernel shows the first thread, which has ended; the process lives on in its others.
                    stat = replace(stat, zombie=False, exiting=False)
                    text = read_text(f"{thread}cgroup", _CGROUP_BYTES, folder)
                elif known and known.start_time == stat.start_time:
                    return known
                is_sure = thread is not None
            user = os.fstat(folder).st_uid
        finally:
            os.close(folder)
        holder = _to_holder(pid, stat, text, classify(text), user, self._booted_at)
        if known and known.holder == holder:
            holder = known.holder
        read_at = now if is_sure else -inf
        return _KnownProcess(f"{path}/stat", file.st_ino, file.st_mtime_ns, stat.start_time, read_at, holder)

    def _boot(self) -> float | None:
        """Return when the kernel started, in seconds since 1970."""
        try:
            lines = _whole(f"{self._prefix}stat").splitlines()
            return next((float(line[6:]) for line in lines if line.startswith("btime ")), None)
        except (OSError, ValueError):
            return None

    def _namespace(self, kind: str) -> int | None:
        if kind not in self._namespaces:
            try:
                link = os.readlink(f"{self._prefix}self/ns/{kind}")  # noqa: PTH115 - as all paths here
                self._namespaces[kind] = int(link.removeprefix(f"{kind}:[").removesuffix("]"))
            except (OSError, ValueError):
                return None
        return self._namespaces[kind]

    def _classifier(self) -> _Classify:
        """Classifies each text once: the processes of a container share it."""
        if self._classify is None or not self._knows_roots:
            private = self._namespace("cgroup") not in (None, _INITIAL_CGROUP)
            classify = partial(cgroup.classify, private=private, roots=self._kubelet_roots())
            self._classify = lru_cache(_CLASSIFIED)(classify)
        return self._classify

    def _kubelet_roots(self) -> frozenset[str] | None:
        """Return where the kubelet's cgroups begin, by the reader's own cgroup, which never changes."""
        if not self._knows_roots:
            try:
                own = read_text(f"{self._prefix}self/cgroup", _CGROUP_BYTES)
            except OSError:
                return None
            self._roots, self._knows_roots = cgroup.roots_above(own), True
        return self._roots

    def _in_two_namespaces(self) -> bool:
        if not self._pid_levels:
            try:
                status = read_bytes(f"{self._prefix}self/status", _CGROUP_BYTES)
            except OSError:
                return False
            numbers = next((line for line in status.split(b"\n") if line.startswith(b"NSpid:")), b"")
            self._pid_levels = len(numbers.split()[1:])
        return self._pid_levels > 1

    def _first_process_is_ours(self) -> bool:
        try:
            first = read_text(f"{self._prefix}1/cgroup", _CGROUP_BYTES)
            ours = read_text(f"{self._prefix}self/cgroup", _CGROUP_BYTES)
        except OSError:
            return False
        match = cgroup.classify(first, roots=cgroup.roots_above(ours))
        neighbour = match.reason == cgroup.PRIVATE and match.owner is not None
        return first == ours or match.kind == "pod" or neighbour


def _outlasts(text: str, match: cgroup.CgroupMatch) -> bool:
    """Whether the kernel still shows the cgroup of a process that has ended.

    Version 2 shows it for as long as there is a PID, version 1 shows `/`. With version 2 alone there is no other line.
    """
    return match.owner is not None or (text.startswith("0::/") and match.line != "0::/")


def _to_holder(pid: int, stat: Stat, text: str, match: cgroup.CgroupMatch, user: int, boot: float | None) -> Holder:
    kind, owner, reason = match.kind, match.owner, match.reason
    if stat.is_over and not _outlasts(text, match):
        kind, owner, reason = "unknown", None, "zombie" if stat.zombie else "exited"
    return Holder(
        pid=pid,
        kind=kind,
        start_time=stat.start_time,
        started_at=None if boot is None else boot + stat.start_time / TICKS,
        owner=owner,
        cgroup=_evidence(match.line),
        reason=reason,
        command=_evidence(stat.command),
        user=user,
    )


def seconds_asleep() -> float:
    """How long the machine was suspended: the time since boot counts that, the monotonic clock does not."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()


def has_begun(holder: Holder, when: float) -> bool:
    """Whether a process began before `when`, in seconds since boot. Its start time is rounded down."""
    return (holder.start_time or 0) / TICKS <= when


def _unknown(pid: int, reason: str) -> Holder:
    return Holder(pid=pid, kind="unknown", reason=reason)


def _evidence(line: str) -> str:
    """A container chooses the names of its cgroups and commands. They must not control a terminal or a log."""
    shown = line[:EVIDENCE_CHARACTERS]
    return shown if shown.isprintable() else "".join(filter(str.isprintable, shown))


def _is_current(known: _KnownProcess, now: float) -> bool:
    if now - known.read_at >= BELIEVED_SECONDS:
        return False
    file = os.stat(known.path)  # noqa: PTH116 - a Path costs more than the call
    return file.st_ino == known.inode and file.st_mtime_ns == known.made_at


def hides_others(root: Path | str) -> bool:
    """With hidepid=2, other users' processes seem not to exist, not even PID 1."""
    return os.path.exists(f"{root}/self") and not os.path.exists(f"{root}/1")  # noqa: PTH110 - never raises


def _whole(path: str) -> str:
    """Read a file of many lines, up to more than any real one has."""
    with open(path, "rb") as file:  # noqa: PTH123 - as all paths here
        return file.read(_WHOLE_BYTES).decode("utf-8", "replace")
