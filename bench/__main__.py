"""`make bench`: runs all benchmarks and prints each figure with its target."""

import sys

from bench import (
    attribution,
    cards,
    cluster,
    footprint,
    history,
    memory,
    parsing,
    rendering,
    sampling,
    scrape,
    switches,
)
from bench.figure import Figure

PARTS = (
    *(rendering, parsing, scrape, sampling, switches, attribution, cards),
    *(cluster, history, footprint, memory),
)


def main() -> int:
    figures = [figure for part in PARTS for figure in part.run()]
    width = max(len(figure.name) for figure in figures)
    for figure in figures:
        print(f"{figure.name:<{width}}  {figure.value:>12}  {figure.target:>10}  {_verdict(figure)}")
    return 0 if all(figure.ok for figure in figures) else 1


def _verdict(figure: Figure) -> str:
    if not figure.target:
        return ""
    return "ok" if figure.ok else "MISSED"


sys.exit(main())
