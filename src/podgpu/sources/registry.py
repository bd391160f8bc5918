"""Finds the sources and makes the combinations of them."""

import pkgutil
from dataclasses import is_dataclass
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from msgspec.structs import replace

import podgpu.sources
from podgpu.option import OptionsOf
from podgpu.sources.protocols import Site, Source, SourceEntry


@cache
def entries() -> dict[str, SourceEntry]:
    """List the values of `--source`: the default first, the demo last."""
    folders = [module.name for module in pkgutil.iter_modules(podgpu.sources.__path__) if module.ispkg]
    single = [entry for folder in folders if (entry := _entry(folder))]
    pairs = [
        _combined(first, second)
        for first in single
        for second in single
        if first.borrows_profiling and second.lends_profiling
    ]
    ordered = sorted(
        [*single, *pairs],
        key=lambda entry: (entry.is_demo, not entry.is_default, "+" in entry.name, entry.name),
    )
    return {entry.name: entry for entry in ordered}


def default() -> SourceEntry:
    (found,) = (entry for entry in entries().values() if entry.is_default)
    return found


def demo() -> SourceEntry:
    (found,) = (entry for entry in entries().values() if entry.is_demo)
    return found


def listing() -> str:
    """Say in one line where each source gets its numbers."""
    return ", ".join(f"{entry.name} ({entry.help})" for entry in entries().values())


def _entry(folder: str) -> SourceEntry | None:
    """Let the source's functions find its options among all."""
    module = import_module(f"{podgpu.sources.__name__}.{folder}")
    entry: SourceEntry | None = getattr(module, "SOURCE", None)
    if entry is None:
        return None
    opens, plays, section = entry.open, entry.play, _section(f"{module.__name__}.options")

    def own(options: OptionsOf) -> Any:
        return options(section) if section else None

    return replace(
        entry,
        sections=(section,) if section else (),
        open=lambda options, site: opens(own(options), site),
        play=(lambda options: plays(own(options))) if plays else None,
    )


def _section(name: str) -> type | None:
    """Return the dataclass that the module of options declares, if there is such a module."""
    members = vars(import_module(name)).values() if find_spec(name) else ()
    classes = (member for member in members if isinstance(member, type) and is_dataclass(member))
    return next((kind for kind in classes if kind.__module__ == name), None)


def _combined(first: SourceEntry, second: SourceEntry) -> SourceEntry:
    return SourceEntry(
        name=f"{first.name}+{second.name}",
        help="both",
        open=partial(_open_both, first, second),
        sections=(*first.sections, *second.sections),
        names_holders=first.names_holders or second.names_holders,
        sees_processes=first.sees_processes or second.sees_processes,
    )


def _open_both(first: SourceEntry, second: SourceEntry, options: OptionsOf, site: Site) -> Source:
    from podgpu.sources.merged import Merged

    return Merged(first.open(options, site), second.open(options, site))
