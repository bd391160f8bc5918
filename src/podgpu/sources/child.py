"""What a source's child process does at its start, whatever it reads."""

import ctypes
import os
import signal
from typing import BinaryIO

INITIAL_PID_NAMESPACE = 0xEFFFFFFC
_PR_SET_PDEATHSIG = 1


def settle() -> tuple[BinaryIO, BinaryIO]:
    """Tie this process to the agent. Return the streams that requests come from and answers go to.

    Requests are not buffered, so that `select` sees each of them.
    """
    # The end of stdin would do, but not for a process that is stopped or busy.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # A terminal sends Ctrl-C to the whole process group, but only the agent decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    requests, answers = os.fdopen(0, "rb", buffering=0), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # anything that a library prints goes to stderr
    return requests, answers


def sees_node() -> bool:
    """Whether this process sees all processes of the node, by their PIDs there."""
    return os.stat("/proc/self/ns/pid").st_ino == INITIAL_PID_NAMESPACE  # noqa: PTH116 - pathlib takes half a MiB
