"""Files of the system, read up to a limit, and what they say about the machine: its address and its guests.

A guest is a card that is given to virtual machines: it has a VFIO driver, and NVML does not list it.
"""

import fcntl
import os
import socket
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Generic, TypeVar

from podgpu.model import GuestCard

T = TypeVar("T")

# A pipe would block the reader, and a link could lead anywhere.
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def read_limited(path: Path, most: int) -> bytes | None:
    """Return a regular file's bytes; None if it cannot be read or has more than `most`."""
    try:
        with os.fdopen(os.open(path, _FLAGS), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            data = file.read(most + 1)
    except OSError:
        return None
    return data if len(data) <= most else None


class ParsedFile(Generic[T]):
    """The parsed content of a file, read again only when it has changed."""

    def __init__(self, path: Path, most: int, parse: Callable[[bytes], T]) -> None:
        self._path = path
        self._most = most
        self._parse = parse
        self._version: tuple[int, int, int] | None = None
        self._value = parse(b"")

    def get(self) -> T:
        """Return the value. A missing file counts as an empty file."""
        version = _version(self._path)
        if version != self._version:
            self._value = self._parse(read_limited(self._path, self._most) or b"")
            self._version = version
        return self._value


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


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

    Bridges of containers do not count. Empty if there is none. This is for when Kubernetes does not tell the address.
    """
    interfaces = sorted(_names(folder), key=lambda name: int(_fact(folder / name, "ifindex") or 0))
    found = (address(name) for name in interfaces if _is_ethernet(folder / name))
    return next(filter(None, found), "")


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir() if entry.name not in _OF_CONTAINERS]
    except OSError:
        return []


def _is_ethernet(interface: Path) -> bool:
    if _fact(interface, "mtu") != ETHERNET_MTU or not int(_fact(interface, "flags") or "0", 16) & _IS_UP:
        return False
    return len(_fact(interface, "address")) <= ETHERNET_CHARACTERS


# The second is for Grace Hopper and Grace Blackwell.
DRIVERS = ("vfio-pci", "nvgrace-gpu-vfio-pci")
_NVIDIA = "0x10de"
# Classes of GPUs, with a screen and without. The audio function and bridges of a card have others.
_DISPLAYS = ("0x0300", "0x0302")
# By the PCI device id. A model that is not listed has no name: a wrong one would be worse.
_MODELS: Mapping[str, str] = {
    "0x1eb8": "NVIDIA T4",
    **dict.fromkeys(("0x20b0", "0x20b2", "0x20b5", "0x20f1"), "NVIDIA A100"),
    "0x2235": "NVIDIA A40",
    "0x2236": "NVIDIA A10",
    **dict.fromkeys(("0x2321", "0x2330", "0x2331"), "NVIDIA H100"),
    "0x2329": "NVIDIA H20",
    **dict.fromkeys(("0x2335", "0x233b"), "NVIDIA H200"),
    "0x2342": "NVIDIA GH200",
    "0x26b5": "NVIDIA L40",
    "0x26b9": "NVIDIA L40S",
    "0x27b8": "NVIDIA L4",
}


def guest_cards(sysfs: Path) -> tuple[GuestCard, ...]:
    """List them by their PCI addresses. `sysfs` is where /sys is mounted."""
    return tuple(sorted(_bound(sysfs / "bus/pci/drivers"), key=lambda card: card.pci_bus_id))


def _bound(drivers: Path) -> Iterator[GuestCard]:
    for driver in DRIVERS:
        try:
            devices = [entry for entry in (drivers / driver).iterdir() if ":" in entry.name]
        except OSError:  # no such driver is loaded
            continue
        for device in devices:
            # A virtual function is a part of a card that NVML lists.
            if _is_gpu(device) and not (device / "physfn").exists():
                model = _MODELS.get(_fact(device, "device"), "")
                yield GuestCard(pci_bus_id=as_nvml(device.name), model=model, driver=driver)


def _is_gpu(device: Path) -> bool:
    return _fact(device, "vendor") == _NVIDIA and _fact(device, "class").startswith(_DISPLAYS)


def _fact(folder: Path, name: str) -> str:
    return (read_limited(folder / name, 4096) or b"").decode(errors="replace").strip()


def as_nvml(address: str) -> str:
    """The kernel writes 0000:3b:00.0, and NVML 00000000:3B:00.0."""
    domain, _, rest = address.partition(":")
    return f"{domain:0>8}:{rest}".upper()
