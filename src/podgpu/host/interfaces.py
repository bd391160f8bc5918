"""The machine's address by its network interfaces, for when Kubernetes does not name it."""

import fcntl
import socket
from collections.abc import Callable
from pathlib import Path

from podgpu.host.system_files import read_limited

FOLDER = Path("/sys/class/net")
ETHERNET_MTU = "1500"
ETHERNET_CHARACTERS = 17  # of an address; InfiniBand's are longer
_OF_CONTAINERS = frozenset({"cni0", "flannel.1", "docker0", "virbr0"})
_IS_UP = 0x1
_GET_ADDRESS = 0x8915  # SIOCGIFADDR
_ANSWER = 256  # bytes; more than a struct ifreq has
_WHERE = slice(20, 24)  # the IPv4 address in it


def address_of(interface: str) -> str:
    """Return its first IPv4 address; empty if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            answer = fcntl.ioctl(asking, _GET_ADDRESS, interface.encode()[:15].ljust(_ANSWER, b"\0"))
        except OSError:
            return ""
    return socket.inet_ntoa(answer[_WHERE])


def own_address(folder: Path = FOLDER, address: Callable[[str], str] = address_of) -> str:
    """Return the address of the first Ethernet interface that is up, by nvidia-gpu-mem-monitor's rule.

    Bridges of containers do not count. Empty if there is none.
    """
    interfaces = sorted(_names(folder), key=lambda name: int(_fact(folder, name, "ifindex") or 0))
    found = (address(name) for name in interfaces if _is_ethernet(folder, name))
    return next(filter(None, found), "")


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir() if entry.name not in _OF_CONTAINERS]
    except OSError:
        return []


def _is_ethernet(folder: Path, name: str) -> bool:
    if (
        _fact(folder, name, "mtu") != ETHERNET_MTU
        or not int(_fact(folder, name, "flags") or "0", 16) & _IS_UP
    ):
        return False
    return len(_fact(folder, name, "address")) <= ETHERNET_CHARACTERS


def _fact(folder: Path, name: str, fact: str) -> str:
    return (read_limited(folder / name / fact, 4096) or b"").decode(errors="replace").strip()
