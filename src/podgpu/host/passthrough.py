"""Cards that the kernel gave to virtual machines: their driver is one of VFIO, and NVML does not list them."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from podgpu.host.system_files import read_limited
from podgpu.model import GuestCard

# The second is for Grace Hopper and Grace Blackwell.
DRIVERS = ("vfio-pci", "nvgrace-gpu-vfio-pci")
_NVIDIA = "0x10de"
_DISPLAYS = (
    "0x0300",
    "0x0302",
)  # classes of GPUs, with a screen and without; a card's sound and bridges are not
# By the PCI id. A model that is not listed has no name: a wrong one would be worse.
_MODELS: Mapping[str, str] = {
    "0x1eb8": "NVIDIA T4",
    "0x20b0": "NVIDIA A100",
    "0x20b2": "NVIDIA A100",
    "0x20b5": "NVIDIA A100",
    "0x20f1": "NVIDIA A100",
    "0x2235": "NVIDIA A40",
    "0x2236": "NVIDIA A10",
    "0x2321": "NVIDIA H100",
    "0x2329": "NVIDIA H20",
    "0x2330": "NVIDIA H100",
    "0x2331": "NVIDIA H100",
    "0x2335": "NVIDIA H200",
    "0x233b": "NVIDIA H200",
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
                yield GuestCard(pci_bus_id=_as_nvml(device.name), model=model, driver=driver)


def _is_gpu(device: Path) -> bool:
    return _fact(device, "vendor") == _NVIDIA and _fact(device, "class").startswith(_DISPLAYS)


def _fact(device: Path, name: str) -> str:
    return (read_limited(device / name, 4096) or b"").decode(errors="replace").strip()


def _as_nvml(address: str) -> str:
    """The kernel writes 0000:3b:00.0, and NVML 00000000:3B:00.0."""
    domain, _, rest = address.partition(":")
    return f"{domain:0>8}:{rest}".upper()
