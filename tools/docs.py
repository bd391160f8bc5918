"""Writes the generated docs, or reports which of them are stale."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tools import checks, metrics, problems, schema, xids
from tools import configuration as options

ROOT = Path(__file__).resolve().parent.parent

Page = tuple[str, Callable[[], str]]


PAGES: tuple[Page, ...] = (
    ("docs/metrics.md", metrics.markdown),
    ("docs/configuration.md", options.markdown),
    ("docs/doctor.md", checks.markdown),
    ("docs/problems.md", problems.markdown),
    ("docs/snapshot.md", schema.markdown),
    ("docs/xids.md", xids.markdown),
)


def write(root: Path, pages: Sequence[Page]) -> None:
    for path, render in pages:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(render(), encoding="utf-8")


def stale(root: Path, pages: Sequence[Page]) -> list[str]:
    """Return the paths of pages that are missing or out of date."""
    return [path for path, render in pages if _content(root / path) != render()]


def _content(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def main(arguments: Sequence[str], root: Path = ROOT, pages: Sequence[Page] = PAGES) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page is stale")
    if not parser.parse_args(arguments).check:
        write(root, pages)
        return 0
    paths = stale(root, pages)
    for path in paths:
        sys.stderr.write(f"{path} is stale: run make docs\n")
    return 1 if paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
