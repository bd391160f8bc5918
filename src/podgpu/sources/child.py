"""What a source's child process does at its start, and the messages between it and the agent.

A message is a length, then its bytes. Both processes import this, so it imports little.
"""

import gc
import os
import signal
from io import BufferedWriter, FileIO

INITIAL_PID_NAMESPACE = 0xEFFFFFFC
LENGTH_BYTES = 4
_PR_SET_PDEATHSIG = 1
_GC_OBJECTS = 5_000  # between two collections: hardly anything refers to itself here


def init_child() -> "tuple[FileIO, BufferedWriter[FileIO]]":
    """Tie this process to the agent. Return the streams that requests come from and answers go to.

    Requests are not buffered, so that `select` sees each of them.
    """
    import ctypes  # the agent does not need it

    # The end of stdin would do, but not for a process that is stopped or busy.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # A terminal sends Ctrl-C to the whole process group, but only the agent decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    requests, answers = FileIO(0, "rb"), BufferedWriter(FileIO(os.dup(1), "wb"))
    os.dup2(2, 1)  # anything that a library prints goes to stderr
    gc.freeze()
    gc.set_threshold(_GC_OBJECTS, 20, 50)
    return requests, answers


def sees_node() -> bool:
    """Whether this process sees all processes of the node, by their PIDs there."""
    return os.stat("/proc/self/ns/pid").st_ino == INITIAL_PID_NAMESPACE  # noqa: PTH116 - pathlib takes half a MiB


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(LENGTH_BYTES, "little") + body


def next_request(stream: FileIO) -> bytes | None:
    """Return the next message to the child process, or None if the agent is gone or wants it to stop."""
    head = _exactly(stream, LENGTH_BYTES)
    return _exactly(stream, int.from_bytes(head, "little")) if head else None


def _exactly(stream: FileIO, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        piece = stream.read(size - len(data))
        if not piece:
            return None
        data += piece
    return data
