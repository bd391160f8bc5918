"""Drop-in pages for other systems, from the same snapshot. Each module is a dialect and needs no registration."""

import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from podgpu.model import Snapshot
from podgpu.views.series import Family

PREFIX = "/metrics/"

# The second argument is an instance of the dialect's class of options, or None if it has none.
Families = Callable[[Snapshot, Any], Sequence[Family]]
# Families about the page itself.
TrafficFamilies = Callable[["PageTraffic"], Sequence[Family]]
# From a query's parameters to JSON. What does not depend on the query is prepared once: there may be many queries.
Answers = Callable[[Mapping[str, str]], bytes]
Document = Callable[[Snapshot, Any], Answers]


class UnreadableError(Exception):
    """The GPUs could not be read. The system that the document stands in for answered with an error then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTraffic:
    """How often a page was served since the start, with how many bytes, and how long that took.

    `recent_seconds` are the times of the last minute's requests, each until its response was ready to be sent.
    """

    requests: int = 0
    body_bytes: int = 0
    seconds: float = 0.0
    recent_seconds: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What a module of this package serves, as its `DIALECT`. A module named with an underscore is no dialect.

    `pages` are paths of metrics, `documents` paths of JSON. An address that was given the dialect NAME serves the page
    `/metrics/NAME` at `/metrics`. The other paths are those of the system that the dialect stands in for.

    `options` is a frozen dataclass with a field for each option (see `podgpu.option`). Flags, environment, file and
    docs then have them; several dialects may share one class. The pages get an instance of it.

    `full_pages` are pages with more families than clients get by default: they can ask for these by name or group.

    `traffic` makes families about the serving of each page, if the system had such. They end the page.
    """

    pages: Mapping[str, Families] = field(default_factory=dict)
    documents: Mapping[str, Document] = field(default_factory=dict)
    full_pages: Mapping[str, Families] = field(default_factory=dict)
    options: type | None = None
    traffic: TrafficFamilies | None = None


def dialects() -> tuple[Dialect, ...]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_")
    return tuple(import_module(f"{__name__}.{name}").DIALECT for name in names)


def dialect_names() -> list[str]:
    """List the dialects that an address can be given."""
    return dialects_of(path for dialect in dialects() for path in (*dialect.pages, *dialect.documents))


def dialects_of(paths: Iterable[str]) -> list[str]:
    """Name the dialects that these paths serve."""
    return sorted(path.removeprefix(PREFIX) for path in paths if path.startswith(PREFIX))
