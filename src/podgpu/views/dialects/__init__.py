"""Other systems' pages from the same snapshot: one file per dialect, found by itself."""

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Protocol

from podgpu.config import Config
from podgpu.model import Snapshot
from podgpu.views.family import Family

Families = Callable[[Snapshot, Config], Sequence[Family]]
# The query's parameters come third; the answer is JSON.
Document = Callable[[Snapshot, Config, Mapping[str, str]], bytes]


class Dialect(Protocol):
    """A module of this package with these names, unless its own begins with an underscore.

    Paths lead to metrics or to JSON documents. The page at `/metrics/NAME` is also that of an address which was given
    the dialect NAME, at `/metrics` there; the others are where the system that it speaks for had its own.
    """

    PAGES: Mapping[str, Families]
    DOCUMENTS: Mapping[str, Document]


def dialects() -> tuple[Dialect, ...]:
    names = sorted(one.name for one in pkgutil.iter_modules(__path__) if not one.name.startswith("_"))
    return tuple(import_module(f"{__name__}.{name}") for name in names)
