"""Drop-in pages for other systems, from the same snapshot. Each module is a dialect and needs no registration."""

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Protocol

from podgpu.config import Config
from podgpu.model import Snapshot
from podgpu.views.series import Family

Families = Callable[[Snapshot, Config], Sequence[Family]]
# The query's parameters come third; the answer is JSON.
Document = Callable[[Snapshot, Config, Mapping[str, str]], bytes]


class Dialect(Protocol):
    """A module of this package with these names. A module whose own name begins with an underscore is no dialect.

    Paths lead to metrics or to JSON documents. An address that was given the dialect NAME serves the page
    `/metrics/NAME` at `/metrics`. The other paths are those of the system that the dialect stands in for.
    """

    PAGES: Mapping[str, Families]
    DOCUMENTS: Mapping[str, Document]


def dialects() -> tuple[Dialect, ...]:
    names = sorted(one.name for one in pkgutil.iter_modules(__path__) if not one.name.startswith("_"))
    return tuple(import_module(f"{__name__}.{name}") for name in names)
