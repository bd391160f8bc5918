"""What the server takes from the kernel: sockets that listen, and descriptors for clients."""

import asyncio
import errno
import os
import resource
import socket

from podgpu.errors import UserError
from podgpu.option.value import Address

BACKLOG = 4096  # the kernel's own bound is lower on older systems
# What the kernel buffers of responses to a client that does not read; its own default is some MiB for each.
SEND_BYTES = 512 * 1024
# Descriptors for the driver, the kubelet, the API server, files, logs and event streams.
OWN_DESCRIPTORS = 640
LEAST_PENDING = 64

# Errors of a machine with only one of IPv4 and IPv6.
_LACKING = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
_OPTION = "--web.listen-address"


async def bind(address: Address) -> list[socket.socket]:
    """Bind a listener for each IP address that the host stands for; one of them is enough. Raises UserError."""
    bound: list[socket.socket] = []
    lacking: OSError | None = None
    for family, (host, _, *scope) in await _resolve(address):
        # Port 0 means any port, but the same one for IPv4 and IPv6.
        port = bound[0].getsockname()[1] if bound else address.port
        try:
            listener = socket.create_server((host, port, *scope), family=family, backlog=BACKLOG)
        except OSError as error:
            if error.errno not in _LACKING:
                for listener in bound:
                    listener.close()
                raise _cannot_listen(address, error) from None
            lacking = error
        else:
            listener.setsockopt(
                socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES
            )  # each connection inherits it
            bound.append(listener)
    if lacking is not None and not bound:
        raise _cannot_listen(address, lacking)
    return bound


async def _resolve(address: Address) -> list[tuple[int, tuple[str | int | bytes, ...]]]:
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


def _cannot_listen(address: Address, error: OSError) -> UserError:
    why = {
        errno.EADDRINUSE: f"the port is in use; stop what listens there or choose another with {_OPTION}",
        errno.EACCES: f"ports below 1024 need privileges; choose a higher one with {_OPTION}",
        errno.EADDRNOTAVAIL: f"this machine has no such address; give {_OPTION} one of its own or none",
        errno.EAFNOSUPPORT: f"this machine lacks that IP version; choose another address with {_OPTION}",
    }
    number = error.errno or 0
    return UserError(f"cannot listen on {address}: {why.get(number) or os.strerror(number)}")


def spare_descriptors(connections: int, *, wanted: int) -> int:
    """Raise the soft limit as far as needed and allowed, and return how many of the wanted descriptors there are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = OWN_DESCRIPTORS + connections + wanted
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return wanted
    return max(min(LEAST_PENDING, wanted), min(wanted, soft - OWN_DESCRIPTORS - connections))
