"""Finds the sources and makes the combinations of them."""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import podgpu.sources
from podgpu.model.ports import NodeSources
from podgpu.option import OptionsOf
from podgpu.sources import Playing, Site, Source


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """What `--source` can name. `sections` are the classes of its options."""

    name: str
    help: str
    open: Callable[[OptionsOf, Site], Source]
    sections: tuple[type, ...]
    is_default: bool = False
    is_demo: bool = False
    names_holders: bool = False
    sees_processes: bool = True
    lends_profiling: bool = False
    borrows_profiling: bool = False
    residents: Callable[[], NodeSources] | None = None
    play: Callable[[OptionsOf], Playing] | None = None


@cache
def entries() -> dict[str, SourceEntry]:
    """List the values of `--source`: the default first, the demo last."""
    folders = [one.name for one in pkgutil.iter_modules(podgpu.sources.__path__) if one.ispkg]
    single = [_entry(folder) for folder in folders if hasattr(_module(folder), "HELP")]
    pairs = [
        _combined(first, second)
        for first in single
        for second in single
        if first.borrows_profiling and second.lends_profiling and first != second
    ]
    ordered = sorted(
        [*single, *pairs], key=lambda one: (one.is_demo, not one.is_default, "+" in one.name, one.name)
    )
    return {one.name: one for one in ordered}


def default() -> SourceEntry:
    (found,) = (one for one in entries().values() if one.is_default)
    return found


def demo() -> SourceEntry:
    (found,) = (one for one in entries().values() if one.is_demo)
    return found


def listing() -> str:
    """Say in one line where each source gets its numbers."""
    return ", ".join(f"{one.name} ({one.help})" for one in entries().values())


def _entry(folder: str) -> SourceEntry:
    module = _module(folder)
    section = _options(folder)

    def own(options: OptionsOf) -> Any:
        return options(section) if section else None

    return SourceEntry(
        name=module.NAME,
        help=module.HELP,
        open=lambda options, site: module.open(own(options), site),
        sections=(section,) if section else (),
        is_default=getattr(module, "IS_DEFAULT", False),
        is_demo=getattr(module, "IS_DEMO", False),
        names_holders=getattr(module, "NAMES_HOLDERS", False),
        sees_processes=getattr(module, "SEES_PROCESSES", True),
        lends_profiling=getattr(module, "LENDS_PROFILING", False),
        borrows_profiling=getattr(module, "BORROWS_PROFILING", False),
        residents=getattr(module, "residents", None),
        play=(lambda options: module.play(own(options))) if hasattr(module, "play") else None,
    )


def _module(folder: str) -> ModuleType:
    return import_module(f"{podgpu.sources.__name__}.{folder}")


def _options(folder: str) -> type | None:
    name = f"{podgpu.sources.__name__}.{folder}.options"
    if find_spec(name) is None:
        return None
    declared = vars(import_module(name)).values()
    (section,) = (
        found
        for found in declared
        if isinstance(found, type) and is_dataclass(found) and found.__module__ == name
    )
    return section


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
