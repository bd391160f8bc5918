"""Which program a process runs, by the file that it was started from.

A process has any name it likes: the kernel takes it from the link that it was started by. Whoever starts `su` or `sudo`
by a link named after another program has a process of root with that name.
"""

import os
import stat
from pathlib import PurePosixPath

MPS = frozenset({"nvidia-cuda-mps-control", "nvidia-cuda-mps-server"})

_STATUS = 4096
_OTHERS_MAY = stat.S_ISUID | stat.S_ISGID | stat.S_IWGRP | stat.S_IWOTH


def runs_mps(folder: str) -> bool:
    """Whether a process of root runs a program of MPS, and only root can have started it so.

    That file is root's, nobody else can write it, and it does not make others root. Without the right to trace the
    process the file cannot be seen. Then nobody but root may be behind it: `su` keeps the number of its user.
    """
    path = f"{folder}/exe"
    try:
        file, name = os.stat(path), os.readlink(path)  # noqa: PTH115, PTH116 - as all paths here
    except PermissionError:
        return _is_roots_alone(folder)
    except OSError:
        return False
    program = PurePosixPath(name.removesuffix(" (deleted)")).name
    return program in MPS and file.st_uid == 0 and not file.st_mode & _OTHERS_MAY


def _is_roots_alone(folder: str) -> bool:
    """Whether its real, effective, saved and file system users are all root."""
    try:
        with open(f"{folder}/status", "rb") as file:  # noqa: PTH123
            lines = file.read(_STATUS).split(b"\n")
    except OSError:
        return False
    return any(line.split() == [b"Uid:", b"0", b"0", b"0", b"0"] for line in lines)
