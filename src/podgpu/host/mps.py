"""What shows that a process belongs to MPS: the program that it runs, or the pipe directory that it has mounted.

The name of a process shows nothing: the kernel takes it from the link that it was started by. A user who starts `su`
or `sudo` by a link named after another program has a process of root with that name.

Clients and server meet in a directory of the host. The device plugin mounts it into the pods that it gives a share to;
no other pod can mount a directory of the host without being trusted with the host itself.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from podgpu.host.proc_stat import read_bytes

DAEMON = "nvidia-cuda-mps"  # the name of its control daemon, as the kernel cuts it
PROGRAMS = frozenset({"nvidia-cuda-mps-control", "nvidia-cuda-mps-server"})
_STATUS_BYTES = 4096
_OTHERS_MAY = stat.S_ISUID | stat.S_ISGID | stat.S_IWGRP | stat.S_IWOTH

# Where device plugins and DRA drivers keep it: folders of the host that only root can make.
_PIPE_DIRECTORIES = re.compile(
    r"(?:/run/nvidia/mps|/tmp/nvidia-mps|/var/lib/kubelet/plugins/[^/]+/mps)(?:/.*)?", re.DOTALL
)
_ESCAPED = re.compile(r"\\([0-7]{3})")
_MOST_LINES = 4096

_Mount = tuple[str, str, str]  # a filesystem, the path in it that is mounted, and where


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


def pipe_directory(mounts: str, host: str) -> str | None:
    """Return the host's path of the pipe directory, by the mountinfo of a process and of the host's first process."""
    host_mounts = list(_mounts(host))
    paths = (path for filesystem, root, _ in _mounts(mounts) for path in _on_host(filesystem, root, host_mounts))
    return next(filter(_PIPE_DIRECTORIES.fullmatch, paths), None)


def _on_host(filesystem: str, path: str, host_mounts: Iterable[_Mount]) -> Iterator[str]:
    for mounted, root, at in host_mounts:
        if mounted == filesystem and (below := _below(path, root)) is not None:
            yield f"{at.rstrip('/')}{below}"


def _below(path: str, root: str) -> str | None:
    above = root.rstrip("/")
    return path.removeprefix(above) if f"{path}/".startswith(f"{above}/") else None


def _mounts(text: str) -> Iterator[_Mount]:
    for line in text.split("\n", _MOST_LINES)[:_MOST_LINES]:
        fields = line.split(" ", 5)
        if len(fields) == 6:
            yield fields[2], _unescaped(fields[3]), _unescaped(fields[4])


def _unescaped(path: str) -> str:
    """The kernel writes spaces and the like as octal numbers."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), path) if "\\" in path else path
