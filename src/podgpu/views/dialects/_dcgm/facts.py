"""Facts about a card or its driver, which a file of counters can turn into labels."""

from collections.abc import Callable
from dataclasses import dataclass

from podgpu.model import Gpu, Snapshot


@dataclass(frozen=True, slots=True)
class Fact:
    """`dcgm49` is its name since 4.9. An unknown value is empty and makes no label."""

    dcgm: str
    dcgm49: str
    value: Callable[[Snapshot, Gpu], str]


def _same(name: str, value: Callable[[Snapshot, Gpu], str]) -> Fact:
    return Fact(name, name, value)


FACTS = (
    Fact(
        "DCGM_FI_DRIVER_VERSION",
        "DCGM_FI_SYSTEM_DRIVER_VERSION",
        lambda snapshot, _: snapshot.driver_version,
    ),
    _same("DCGM_FI_NVML_VERSION", lambda snapshot, _: snapshot.nvml_version),
    _same("DCGM_FI_DEV_NAME", lambda _, gpu: gpu.model),
    _same("DCGM_FI_DEV_UUID", lambda _, gpu: gpu.uuid),
    _same("DCGM_FI_DEV_PCI_BUSID", lambda _, gpu: gpu.pci_bus_id),
    _same("DCGM_FI_DEV_NVML_INDEX", lambda _, gpu: str(gpu.index)),
    _same("DCGM_FI_DEV_MINOR_NUMBER", lambda _, gpu: "" if gpu.minor is None else str(gpu.minor)),
    _same("DCGM_FI_DEV_VBIOS_VERSION", lambda _, gpu: gpu.vbios),
)
