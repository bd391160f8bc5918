"""Other systems' pages from the same snapshot: one file per dialect, found by itself."""

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from podgpu.model import Snapshot
from podgpu.views.series import Family

# The second argument is an instance of the dialect's own Options, or None if it declares none.
Families = Callable[[Snapshot, Any], Sequence[Family]]
# The query's parameters come third; the answer is JSON.
Document = Callable[[Snapshot, Any, Mapping[str, str]], bytes]


class Dialect(Protocol):
    """A module of this package with these names, unless its own begins with an underscore.

    Paths lead to metrics or to JSON documents. The page at `/metrics/NAME` is also that of an address which was given
    the dialect NAME, at `/metrics` there; the others are where the system that it speaks for had its own.

    A dialect with options declares them as `Options`, a frozen dataclass with a field for each (see `podgpu.option`).
    The flags, the environment, the file and the docs have them at once; several dialects may share one class.
    """

    PAGES: Mapping[str, Families]
    DOCUMENTS: Mapping[str, Document]


def dialects() -> tuple[Dialect, ...]:
    names = sorted(one.name for one in pkgutil.iter_modules(__path__) if not one.name.startswith("_"))
    return tuple(import_module(f"{__name__}.{name}") for name in names)


def options_class(dialect: Dialect) -> type | None:
    return getattr(dialect, "Options", None)
