"""Ports for programs that are told where to listen."""

import os
import random
import socket
from collections import deque
from contextlib import suppress
from pathlib import Path

# A program takes a while to listen at its port, and until then it seems to be free: it is given to no other one
# meanwhile, neither here nor by tests that run beside these.
PROCESSES = 16
_given: deque[int] = deque(maxlen=256)


def quiet_port() -> int:
    """Return a free port that the kernel gives to no connection, so that none has it before the program does."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ours = range(10_000 + os.getpid() % PROCESSES, lowest, PROCESSES)
    for port in random.sample(ours, len(ours)):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if port not in _given:
                _given.append(port)
                return port
    raise RuntimeError("no port is free")
