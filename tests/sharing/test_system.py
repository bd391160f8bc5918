"""A sharing system is typed: what does not fit is refused before it runs."""

from pathlib import Path

from mypy import api

SYSTEM = """
from collections.abc import Iterator

from podgpu.model import Allocation, Claim, Device
from podgpu.sharing.inventory import Inventory
from podgpu.sharing.system import SharingSystem


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return False


def claims(inventory: Inventory) -> Iterator[Claim]:
    yield from ()


def cards(inventory: Inventory) -> Iterator[Device]:
    yield from ()


SYSTEM = SharingSystem(name="a", signs=(), needs="", explains=explains, claims=claims, {fields})
"""


# The fields of each file, and what mypy says about them.
FIELDS = {
    "right": ("cards=cards", ""),
    "misspelt": ("card=cards", 'Unexpected keyword argument "card" for "SharingSystem"'),
    "other": ("cards=explains", 'Argument "cards" to "SharingSystem" has incompatible type'),
    "flag": ("lasts=cards", 'Argument "lasts" to "SharingSystem" has incompatible type'),
}


def test_mypy_sees_a_misspelt_or_wrong_field(tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.py" for name in FIELDS]
    for file in files:
        file.write_text(SYSTEM.replace("{fields}", FIELDS[file.stem][0]))
    output, errors, _ = api.run(["--strict", "--follow-imports=silent", *map(str, files)])
    assert errors == ""
    said = [line for line in output.splitlines() if ": error: " in line]
    assert {Path(line.partition(":")[0]).stem for line in said} == FIELDS.keys() - {"right"}
    for name, (_, complaint) in FIELDS.items():
        assert all(complaint in line for line in said if f"{name}.py" in line)
