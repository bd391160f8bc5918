"""Plays cases of sharing systems: python -m tests.oracle [--show] [FILE.jsonl.xz ...]"""

import argparse
import asyncio
from pathlib import Path

from tests.oracle.play import CASES, Played, line, played
from tests.oracle.verdict import RIGHT

SHOWN = 10  # differences of one case


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="all of tests/oracle/cases unless given")
    parser.add_argument("--show", action="store_true", help="print where claims and truth differ")
    arguments = parser.parse_args()
    for path in arguments.files or sorted(CASES.glob("*.jsonl.xz")):
        found = asyncio.run(played(path))
        print(line(path, found), flush=True)
        if arguments.show:
            _show(found)


def _show(found: list[Played]) -> None:
    for number, case in enumerate(found, 1):
        if case.verdict != RIGHT:
            print(f"  case {number} ({case.case.kind or ''})")
            for difference in case.differences[:SHOWN]:
                print(f"    {difference}")


main()
