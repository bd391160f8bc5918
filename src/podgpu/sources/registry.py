"""Finds the sources and makes the combinations of them."""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import podgpu.sources
from podgpu.model.ports import NodeSources
from podgpu.option import OptionsOf
from podgpu.sources.player import Player
from podgpu.sources.protocols import Site, Source

FLAGS = ("is_default", "is_demo", "names_holders", "sees_processes", "lends_profiling", "borrows_profiling")


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """A value of `--source`. `sections` are the classes of its options."""

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
    node_sources: Callable[[], NodeSources] | None = None
    play: Callable[[OptionsOf], Player] | None = None


@cache
def entries() -> dict[str, SourceEntry]:
    """List the values of `--source`: the default first, the demo last."""
    folders = [module.name for module in pkgutil.iter_modules(podgpu.sources.__path__) if module.ispkg]
    single = [entry for folder in folders if (entry := _entry(folder))]
    pairs = [
        _combined(first, second)
        for first in single
        for second in single
        if first.borrows_profiling and second.lends_profiling and first != second
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
    module: Any = import_module(f"{podgpu.sources.__name__}.{folder}")
    if not hasattr(module, "HELP"):
        return None
    section = _section(f"{module.__name__}.options")

    def own(options: OptionsOf) -> Any:
        return options(section) if section else None

    return SourceEntry(
        name=module.NAME,
        help=module.HELP,
        open=lambda options, site: module.open(own(options), site),
        sections=(section,) if section else (),
        node_sources=getattr(module, "node_sources", None),
        play=(lambda options: module.play(own(options))) if hasattr(module, "play") else None,
        **{flag: getattr(module, flag.upper()) for flag in FLAGS if hasattr(module, flag.upper())},
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
