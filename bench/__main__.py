"""`make bench`: every figure of one run, side by side, with its target."""

import sys

from bench import attribution, cards, footprint, parsing, rendering, sampling, scrape
from bench.row import Row

PARTS = (rendering, parsing, scrape, sampling, attribution, cards, footprint)


def main() -> int:
    rows = [row for part in PARTS for row in part.run()]
    width = max(len(row.name) for row in rows)
    for row in rows:
        print(f"{row.name:<{width}}  {row.figure:>12}  {row.target:>10}  {_verdict(row)}")
    return 0 if all(row.ok for row in rows) else 1


def _verdict(row: Row) -> str:
    if not row.target:
        return ""
    return "ok" if row.ok else "MISSED"


sys.exit(main())
