"""What became of the matrix, as `make matrix` prints it at its end: a row for each fault, then the counts."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.faults.catalogue import COUNTS, KINDS
from tests.faults.play import Phase
from tests.faults.plays import PLAYS

RECOVERED = "recovered"
_CELL = re.compile(r"test_a_fault_in_a_phase\[([A-Z]\d+(?:\.\w+)?)-(\w+)\]$")


@dataclass(frozen=True)
class Result:
    """What became of a cell. `recovered` is in seconds; a phase at whose end nothing lives has none."""

    fault: str
    phase: Phase
    is_green: bool
    recovered: float | None = None


def result(test: str, properties: Iterable[tuple[str, object]], *, is_green: bool) -> Result | None:
    """Return the result of a test by its name, or None if it is not one of the matrix."""
    found = _CELL.search(test)
    if found is None:
        return None
    seconds = dict(properties).get(RECOVERED)
    return Result(found[1], Phase(found[2]), is_green, float(seconds) if isinstance(seconds, int | float) else None)


def table(results: Iterable[Result]) -> Iterator[str]:
    cells = {(cell.fault, cell.phase): cell for cell in results}
    yield f"{'fault':13}{''.join(f'{phase:9}' for phase in Phase)}"
    for play in PLAYS:
        words = [_word(cells.get((play.id, phase)), is_left_out=phase in play.left_out) for phase in Phase]
        yield f"{play.id:13}{''.join(f'{word:9}' for word in words)}{play.what}"
    yield ""
    yield from counts(cells.values())


def counts(results: Iterable[Result]) -> Iterator[str]:
    """Write the counts of each kind as the rows of a table in Markdown."""
    found = list(results)
    yield "| kind | faults | played | cells | green | red | slowest recovery |"
    yield "|---|---|---|---|---|---|---|"
    for kind, name in KINDS.items():
        played = len({play.fault_id for play in PLAYS if play.kind == kind})
        yield _row(f"{kind}: {name}", COUNTS[kind], played, [cell for cell in found if cell.fault[0] == kind])
    yield _row("all", sum(COUNTS.values()), len({play.fault_id for play in PLAYS}), found)


def _row(name: str, faults: int, played: int, results: list[Result]) -> str:
    green = sum(cell.is_green for cell in results)
    slowest = max((cell.recovered or 0.0 for cell in results), default=0.0)
    return f"| {name} | {faults} | {played} | {len(results)} | {green} | {len(results) - green} | {slowest:.1f} s |"


def _word(found: Result | None, *, is_left_out: bool) -> str:
    if found is None:
        return "–" if is_left_out else "?"
    return "ok" if found.is_green else "RED"
