"""Plays a file of cases, and counts how podgpu fares."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from podgpu import sharing
from tests.oracle import dynamic
from tests.oracle.case import Case, read
from tests.oracle.node import inventory
from tests.oracle.verdict import NOT_UNDERSTOOD, RIGHT, WRONG, Difference, differences, verdict

CASES = Path(__file__).parent / "cases"


class Played(Struct, frozen=True):
    """One case, and where claims and truth differ."""

    case: Case
    differences: tuple[Difference, ...]

    @property
    def verdict(self) -> str:
        return verdict(self.differences)


async def played(path: Path) -> list[Played]:
    systems = sharing.systems()
    return [
        Played(case, tuple(differences(case.truth or (), sharing.claims(await inventory(case), systems))))
        for case in cases(path)
    ]


def cases(path: Path) -> Iterator[Case]:
    """Read a file. A node of DRA has devices only: claims are made up for it, and the truth with them."""
    for number, case in enumerate(read(path)):
        yield from dynamic.composed(case, number) if case.devices is not None else (case,)


def line(path: Path, found: list[Played]) -> str:
    counts = Counter(one.verdict for one in found)
    name = path.name.partition(".jsonl")[0]
    verdicts = " ".join(f"{one} {counts[one]}" for one in (RIGHT, WRONG, NOT_UNDERSTOOD))
    return f"{name} cases {len(found)} {verdicts}"
