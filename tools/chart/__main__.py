"""Writes what is made from the chart and the options, or says which of it is stale."""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tools.chart import PROJECT, copies, manifests, option_schema, privileges, schema

Page = tuple[Path, Callable[[], str]]
# The manifests need helm, so that a test checks them and not --check.
_PAGES: Sequence[Page] = (
    (schema.PATH, schema.text),
    (option_schema.RANGES, schema.ranges),
    (privileges.PATH, privileges.text),
    *((copy, partial(original.read_text, encoding="utf-8")) for copy, original in copies.pages()),
)
_MANIFESTS: Sequence[Page] = [(manifests.FOLDER / kind, partial(manifests.text, kind)) for kind in manifests.KINDS]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.chart", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is stale")
    if parser.parse_args(arguments).check:
        return _check()
    for path in copies.strays():
        path.unlink()
    for path, text in (*_PAGES, *_MANIFESTS):
        path.write_text(text(), encoding="utf-8")
    return 0


def _check() -> int:
    stale = [path for path, text in _PAGES if not path.exists() or path.read_text(encoding="utf-8") != text()]
    stale += copies.strays()
    for path in stale:
        sys.stderr.write(f"{path.relative_to(PROJECT)} is stale: run make chart\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
