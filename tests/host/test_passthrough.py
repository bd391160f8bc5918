from pathlib import Path

from podgpu.host.system_files import guest_cards


def bind(sysfs: Path, driver: str, address: str, **facts: str) -> None:
    """As the kernel shows a device: a folder of its own, to which the driver's folder has a link."""
    device = sysfs / "devices/pci0000:00" / address
    device.mkdir(parents=True)
    for name, text in {"vendor": "0x10de", "class": "0x030200", "device": "0x2335", **facts}.items():
        (device / name).write_text(f"{text}\n")
    folder = sysfs / "bus/pci/drivers" / driver
    folder.mkdir(parents=True, exist_ok=True)
    (folder / address).symlink_to(device)


def test_only_gpus_that_vfio_has_are_guests(tmp_path: Path) -> None:
    bind(tmp_path, "nvidia", "0000:18:00.0")
    bind(tmp_path, "vfio-pci", "0000:86:00.0", device="0x26b9")
    bind(tmp_path, "vfio-pci", "0000:86:00.1", **{"class": "0x040300"})
    bind(tmp_path, "vfio-pci", "0000:af:00.0", vendor="0x15b3")
    bind(tmp_path, "nvgrace-gpu-vfio-pci", "0009:01:00.0", device="0xffff")
    found = [(card.pci_bus_id, card.model, card.driver) for card in guest_cards(tmp_path)]
    assert found == [
        ("00000000:86:00.0", "NVIDIA L40S", "vfio-pci"),
        ("00000009:01:00.0", "", "nvgrace-gpu-vfio-pci"),
    ]


def test_a_virtual_function_is_a_part_of_a_card_that_is_listed(tmp_path: Path) -> None:
    bind(tmp_path, "vfio-pci", "0000:d8:00.4")
    (tmp_path / "devices/pci0000:00/0000:d8:00.4/physfn").symlink_to(tmp_path)
    assert guest_cards(tmp_path) == ()


def test_a_machine_without_vfio_has_none(tmp_path: Path) -> None:
    assert guest_cards(tmp_path) == ()


def test_a_device_that_is_taken_away_meanwhile_is_no_guest(tmp_path: Path) -> None:
    bind(tmp_path, "vfio-pci", "0000:86:00.0")
    (tmp_path / "devices/pci0000:00/0000:86:00.0/vendor").unlink()
    assert guest_cards(tmp_path) == ()
