"""Drop-in pages for other systems, from the same snapshot. Each module is a dialect and needs no registration."""

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from podgpu.model import Snapshot
from podgpu.views.series import Family

PREFIX = "/metrics/"

# The second argument is an instance of the dialect's own Options, or None if it declares none.
Families = Callable[[Snapshot, Any], Sequence[Family]]
# The JSON for a query's parameters, made of what is ready: queries differ, and there may be many.
Answers = Callable[[Mapping[str, str]], bytes]
Document = Callable[[Snapshot, Any], Answers]


class UnreadableError(Exception):
    """A document that has nothing to say because the GPUs could not be read. Its system answered with an error then."""


class Dialect(Protocol):
    """A module of this package with these names. A module whose own name begins with an underscore is no dialect.

    Paths lead to metrics or to JSON documents. An address that was given the dialect NAME serves the page
    `/metrics/NAME` at `/metrics`. The other paths are those of the system that the dialect stands in for.

    A dialect with options declares them as `Options`, a frozen dataclass with a field for each (see `podgpu.option`).
    Flags, environment, file and docs then have them; several dialects may share one class.

    A dialect that could show more than its pages have by default declares views with all of it as `MORE`, by path:
    clients can ask for these families by name or group.
    """

    PAGES: Mapping[str, Families]
    DOCUMENTS: Mapping[str, Document]


def dialects() -> tuple[Dialect, ...]:
    names = sorted(one.name for one in pkgutil.iter_modules(__path__) if not one.name.startswith("_"))
    return tuple(import_module(f"{__name__}.{name}") for name in names)


def dialect_names() -> list[str]:
    """List what an address can be given."""
    paths = (path for one in dialects() for path in (*one.PAGES, *one.DOCUMENTS))
    return sorted(path.removeprefix(PREFIX) for path in paths if path.startswith(PREFIX))


def more_of(dialect: Dialect) -> Mapping[str, Families]:
    return getattr(dialect, "MORE", {})


def options_class(dialect: Dialect) -> type | None:
    return getattr(dialect, "Options", None)
