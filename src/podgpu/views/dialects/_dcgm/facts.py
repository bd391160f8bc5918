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


FACTS = (
    Fact(
        "DCGM_FI_DRIVER_VERSION",
        "DCGM_FI_SYSTEM_DRIVER_VERSION",
        lambda snapshot, _: snapshot.driver_version,
    ),
    Fact("DCGM_FI_NVML_VERSION", "DCGM_FI_SYSTEM_NVML_VERSION", lambda snapshot, _: snapshot.nvml_version),
    Fact("DCGM_FI_DEV_NAME", "DCGM_FI_DEV_GPU_NAME", lambda _, gpu: gpu.model),
    Fact("DCGM_FI_DEV_BRAND", "DCGM_FI_DEV_GPU_BRAND", lambda _, gpu: gpu.brand or ""),
    Fact("DCGM_FI_DEV_SERIAL", "DCGM_FI_DEV_BOARD_SERIAL", lambda _, gpu: gpu.serial or ""),
    Fact("DCGM_FI_DEV_UUID", "DCGM_FI_DEV_GPU_UUID", lambda _, gpu: gpu.uuid),
    Fact("DCGM_FI_DEV_PCI_BUSID", "DCGM_FI_DEV_PCI_BUS_ID", lambda _, gpu: gpu.pci_bus_id),
    Fact("DCGM_FI_DEV_NVML_INDEX", "DCGM_FI_DEV_NVML_INDEX", lambda _, gpu: str(gpu.index)),
    Fact(
        "DCGM_FI_DEV_MINOR_NUMBER",
        "DCGM_FI_DEV_GPU_MINOR_NUMBER",
        lambda _, gpu: "" if gpu.minor is None else str(gpu.minor),
    ),
    Fact("DCGM_FI_DEV_VBIOS_VERSION", "DCGM_FI_DEV_VBIOS_VERSION", lambda _, gpu: gpu.vbios),
    Fact(
        "DCGM_FI_DEV_INFOROM_IMAGE_VER",
        "DCGM_FI_DEV_INFOROM_IMAGE_VERSION",
        lambda _, gpu: gpu.inforom_image or "",
    ),
    Fact(
        "DCGM_FI_DEV_OEM_INFOROM_VER", "DCGM_FI_DEV_INFOROM_OEM_VERSION", lambda _, gpu: gpu.inforom_oem or ""
    ),
    Fact(
        "DCGM_FI_DEV_ECC_INFOROM_VER", "DCGM_FI_DEV_INFOROM_ECC_VERSION", lambda _, gpu: gpu.inforom_ecc or ""
    ),
    Fact(
        "DCGM_FI_DEV_POWER_INFOROM_VER",
        "DCGM_FI_DEV_INFOROM_POWER_VERSION",
        lambda _, gpu: gpu.inforom_power or "",
    ),
)
