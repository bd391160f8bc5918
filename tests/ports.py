"""Ports for programs that are told where to listen."""

import random
import socket
from contextlib import suppress
from pathlib import Path


def quiet_port() -> int:
    """Return a free port that the kernel gives to no connection, so that none has it before the program does."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.sample(range(10_000, lowest), 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free")
