"""A past that is kept in a real store, which then answers: for tests that ask both kinds of stores the same."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.e2e import prometheus, victoria

STORES = ("prometheus", "victoria-metrics")


@contextmanager
def keeping(kind: str, lines: Sequence[str], folder: Path) -> Iterator[str]:
    """Start a store that has these lines of text format, each with its time. Yields its address."""
    if kind == "victoria-metrics":
        with victoria.victoria(folder) as url:
            victoria.keep(url, "\n".join([*lines, ""]))
            yield url
    else:
        prometheus.keep(lines, folder)
        configuration = folder / "prometheus.yml"
        configuration.write_text("{}")
        with prometheus.started(configuration, folder) as here:
            yield here.url
