"""The page of the fake driver, line by line beside one that a real dcgm-exporter served of a real H200."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.rig import running_agent
from tests.fakenvml.conftest import library
from tests.fakenvml.fake_node import FakeNode, h200

__all__ = ["library"]

RECORDED = Path(__file__).parents[3] / "recorded" / "h200-dcgm" / "dcgm-exporter.prom"

# Lines that only podgpu's page has, and why.
ONLY_OURS = {
    # This exporter has no row before the first XID. Others that users published have one with 0, as podgpu.
    "DCGM_FI_DEV_XID_ERRORS": "0 until there is an XID",
}

SAMPLE = re.compile(r"(\w+)\{(.*)\} (\S+)")
LABEL = re.compile(r'(\w+)="(?:[^"\\]|\\.)*"')
DIGITS = re.compile(r"[0-9]+")


def shapes(page: str) -> list[str]:
    """The lines without what differs from card to card: values of labels, and digits before a decimal point."""
    return [_shape(line) for line in page.splitlines()]


def _shape(line: str) -> str:
    found = SAMPLE.fullmatch(line)
    if found is None:
        return line
    whole, point, rest = found[3].partition(".")
    number = DIGITS.sub("N", whole) + point + "0" * len(rest)
    return f"{found[1]}{{{','.join(LABEL.findall(found[2]))}}} {number}"


@pytest.fixture
def served(library: Path, tmp_path: Path) -> Iterator[str]:
    with running_agent(FakeNode([h200(0)]), tmp_path, library) as agent:

        def page() -> str:
            status, body = agent.request("/metrics/dcgm")
            assert status == 200
            return body.decode()

        # Rates need two readings. What stands last, the license's row included, is then there too.
        agent.wait_for(
            "everything",
            lambda: all(name in page() for name in ("PROF_PCIE_RX_BYTES", "VGPU_LICENSE", "XID_ERRORS")),
        )
        yield page()


def test_the_page_is_that_of_a_real_dcgm_exporter_line_by_line(served: str) -> None:
    ours = [line for line in shapes(served) if not any(name in line for name in ONLY_OURS)]
    assert ours == shapes(RECORDED.read_text())


def test_a_card_with_a_license_for_virtual_gpus_says_so(library: Path, tmp_path: Path) -> None:
    card = h200(0)
    card.values["vgpu_license"] = 2
    with running_agent(FakeNode([card]), tmp_path, library) as agent:

        def says(number: str) -> bool:
            lines = agent.request("/metrics/dcgm")[1].decode().splitlines()
            rows = [row for row in lines if row.startswith("DCGM_FI_DEV_VGPU_LICENSE_STATUS{")]
            return [row.rpartition(" ")[2] for row in rows] == [number]

        agent.wait_for("the license", lambda: says("1"))


def test_what_only_our_page_has_is_really_there(served: str) -> None:
    assert [name for name in ONLY_OURS if f"\n{name}{{" not in served] == []


def test_the_recorded_page_has_whole_numbers_and_six_decimals() -> None:
    forms = {line.rpartition(" ")[2] for line in shapes(RECORDED.read_text()) if not line.startswith("#")}
    assert forms == {"N", "N.000000"}


def test_the_versions_of_the_inforom_are_labels_if_a_counters_file_asks_for_them(library: Path, tmp_path: Path) -> None:
    counters = tmp_path / "counters.csv"
    counters.write_text(
        "DCGM_FI_DEV_GPU_TEMP, gauge, as listed\n"
        "DCGM_FI_DEV_INFOROM_IMAGE_VER, label, Inforom image version\n"
        "DCGM_FI_DEV_OEM_INFOROM_VER, label, OEM inforom version\n"
        "DCGM_FI_DEV_ECC_INFOROM_VER, label, ECC inforom version\n"
        "DCGM_FI_DEV_POWER_INFOROM_VER, label, Power management object inforom version\n"
    )
    flags = [f"--dcgm.collectors={counters}"]
    # The card has no object for its power: nobody knows its version.
    wanted = (
        'Hostname="test-node",DCGM_FI_DEV_ECC_INFOROM_VER="7.16",'
        'DCGM_FI_DEV_INFOROM_IMAGE_VER="G520.0282.02.02",DCGM_FI_DEV_OEM_INFOROM_VER="2.1"} 56\n'
    )
    with running_agent(FakeNode([h200(0)]), tmp_path, library, flags=flags) as agent:
        agent.wait_for("the versions", lambda: wanted in agent.request("/metrics/dcgm")[1].decode())


def test_the_bandwidth_of_a_single_nvlink_is_there_if_a_counters_file_asks_for_it(
    library: Path, tmp_path: Path
) -> None:
    counters = tmp_path / "counters.csv"
    lanes = "".join(f"DCGM_FI_DEV_NVLINK_BANDWIDTH_L{link}, gauge, as listed\n" for link in (0, 1, 17))
    counters.write_text(lanes)
    card = h200(0)
    # MiB/s, received and sent: of all links, of link 0 and of link 17. Link 1 carries nothing.
    card.gpm |= {60: 1010.0, 61: 520.0, 62: 1000.0, 63: 500.0, 96: 10.0, 97: 20.0}
    flags = [f"--dcgm.collectors={counters}"]
    with running_agent(FakeNode([card]), tmp_path, library, flags=flags) as agent:

        def found() -> dict[str, str]:
            lines = agent.request("/metrics/dcgm")[1].decode().splitlines()
            return {row.partition("{")[0][-4:]: row.rpartition(" ")[2] for row in lines if row[:1] != "#"}

        agent.wait_for("both links", lambda: found() == {"H_L0": "1573", "_L17": "31"})
