"""Listening sockets, and what to tell the user when there can be none."""

import asyncio
import errno
import socket

from podgpu.errors import UserError
from podgpu.option.address import Address

BACKLOG = 4096  # the kernel's own bound is lower on older systems

# What the kernel keeps of answers for a client that does not read them; by itself it would be some MiB for each.
SEND_BYTES = 512 * 1024

_Place = tuple[str | int | bytes, ...]

# Errors of a machine with only one of IPv4 and IPv6.
_LACKING = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
_OPTION = "--web.listen-address"


async def sockets(address: Address) -> list[socket.socket]:
    """Bind one socket for each IP address the host stands for; one of them is enough."""
    bound: list[socket.socket] = []
    lacking: OSError | None = None
    for family, place in await _places(address):
        # Port 0 means any port, but the same one for IPv4 and IPv6.
        port = bound[0].getsockname()[1] if bound else address.port
        try:
            bound.append(_bind(family, (place[0], port, *place[2:])))
        except OSError as error:
            if error.errno in _LACKING:
                lacking = error
                continue
            _close(bound)
            raise _refusal(address, error) from None
    if lacking is not None and not bound:
        raise _refusal(address, lacking)
    return bound


async def _places(address: Address) -> list[tuple[int, _Place]]:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(
            address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except socket.gaierror:
        raise UserError(
            f"cannot listen on {address}: the name does not resolve; give {_OPTION} an IP address"
        ) from None
    return list(dict.fromkeys((family, place) for family, _, _, _, place in found))


def _bind(family: int, place: _Place) -> socket.socket:
    one = socket.socket(family, socket.SOCK_STREAM)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)  # each connection inherits it
        one.bind(place)
        one.listen(BACKLOG)
    except OSError:
        one.close()
        raise
    return one


def _close(bound: list[socket.socket]) -> None:
    for one in bound:
        one.close()


def _refusal(address: Address, error: OSError) -> UserError:
    why = {
        errno.EADDRINUSE: f"the port is in use; stop what listens there or choose another with {_OPTION}",
        errno.EACCES: f"ports below 1024 need privileges; choose a higher one with {_OPTION}",
        errno.EADDRNOTAVAIL: f"this machine has no such address; give {_OPTION} one of its own or none",
        errno.EAFNOSUPPORT: f"this machine lacks that IP version; choose another address with {_OPTION}",
    }
    return UserError(f"cannot listen on {address}: {why.get(error.errno or 0, error.strerror)}")
