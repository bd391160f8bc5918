"""Where clients come from, and who of them has behaved."""

import socket
from ipaddress import IPv6Address

NETWORK_BYTES = 8


def origin(peer: object) -> str:
    """Return the client's IP address, or its /64 network: whoever has one of those, has all its addresses."""
    host = str(peer[0]).partition("%")[0] if isinstance(peer, tuple) and peer else ""
    if ":" not in host:
        return host
    try:
        network = socket.inet_pton(socket.AF_INET6, host)[:NETWORK_BYTES]
    except OSError:
        return host
    return f"{IPv6Address(network.ljust(16, bytes(1)))}/64"


class Standing:
    """The origins that took an answer lately. Keeps the latest of them, so that strangers cannot fill it up."""

    def __init__(self, seconds: float = 600.0, most: int = 1024) -> None:
        self._seconds = seconds
        self._most = most
        self._taken: dict[str, float] = {}

    def credit(self, address: str, now: float) -> None:
        self._taken.pop(address, None)
        self._taken[address] = now
        if len(self._taken) > self._most:
            del self._taken[next(iter(self._taken))]

    def is_good(self, address: str, now: float) -> bool:
        return now - self._taken.get(address, -self._seconds) < self._seconds
