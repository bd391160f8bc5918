"""Rules and dashboards inside the chart: helm reads no file outside of it, so it has copies."""

from collections.abc import Iterator
from pathlib import Path

from tools.chart import CHART, PROJECT

ORIGINALS = {"rules": "*.yaml", "dashboards": "*.json"}


def pages() -> Iterator[tuple[Path, Path]]:
    """Each copy with its original."""
    for folder, pattern in ORIGINALS.items():
        for original in sorted((PROJECT / "deploy" / folder).glob(pattern)):
            yield CHART / "files" / folder / original.name, original


def strays() -> list[Path]:
    """Copies whose originals are gone."""
    found = {path for folder in ORIGINALS for path in (CHART / "files" / folder).iterdir()}
    return sorted(found - {copy for copy, _ in pages()})
