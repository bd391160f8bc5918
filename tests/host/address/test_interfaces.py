"""The machine's address, by nvidia-gpu-mem-monitor's rule."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from podgpu.host.system_files import address_of, own_address

ADDRESSES = {"bond0": "10.0.0.4", "eth0": "10.0.0.7", "eth1": "10.0.0.8", "docker0": "172.17.0.1"}
ETHERNET = {"mtu": "1500", "flags": "0x1003", "address": "02:fc:00:00:00:01"}


def interfaces(folder: Path, **found: Mapping[str, str]) -> Path:
    """Write them as the kernel shows them, in this order."""
    for number, (name, facts) in enumerate(found.items(), 1):
        (folder / name).mkdir()
        for fact, text in ({"ifindex": str(number)} | dict(facts)).items():
            (folder / name / fact).write_text(text + "\n")
    return folder


def found(folder: Path) -> str:
    return own_address(folder, lambda name: ADDRESSES.get(name, ""))


def test_the_first_ethernet_interface_counts(tmp_path: Path) -> None:
    loopback = {"mtu": "65536", "flags": "0x9", "address": "00:00:00:00:00:00"}
    assert found(interfaces(tmp_path, lo=loopback, eth1=ETHERNET, eth0=ETHERNET)) == "10.0.0.8"


@pytest.mark.parametrize(
    "other",
    [
        {"mtu": "9000"},
        {"flags": "0x1002"},  # down
        {"address": "80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:0b:d3:01"},  # InfiniBand
    ],
)
def test_others_do_not(tmp_path: Path, other: Mapping[str, str]) -> None:
    assert found(interfaces(tmp_path, bond0=ETHERNET | dict(other), eth0=ETHERNET)) == "10.0.0.7"


def test_a_bridge_of_containers_does_not(tmp_path: Path) -> None:
    assert found(interfaces(tmp_path, docker0=ETHERNET)) == ""


def test_one_without_an_address_does_not(tmp_path: Path) -> None:
    assert found(interfaces(tmp_path, veth1=ETHERNET, eth0=ETHERNET)) == "10.0.0.7"


def test_without_interfaces_it_is_not_known(tmp_path: Path) -> None:
    assert found(tmp_path / "missing") == ""


def test_the_kernel_tells_the_address_of_an_interface() -> None:
    assert address_of("lo") == "127.0.0.1"
    assert address_of("no-such-one") == ""
