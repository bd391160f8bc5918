"""Checks the walls between the rooms of podgpu. The table says what each room may import; other imports are errors.

A pure room may not open a file or read a clock either, by whatever name.
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from importlib.util import find_spec
from pathlib import Path

import grimp

ROOT = "podgpu"
EVERYWHERE = {"errors"}  # any room may raise a UserError

_NODE = {
    "model",
    "catalog",
    "sources",
    "kube",
    "host",
    "sharing",
    "ledger",
    "agent",
    "option",
    "log",
    "net",
    "feed",
    "supervise",
    "insight",
    "numbers",
}
_PAGES = {"views", "cluster", "serve", "push", "doctor", "config"}

MAY_IMPORT: Mapping[str, set[str]] = {
    "errors": set(),
    "log": set(),
    "feed": set(),
    "numbers": set(),
    "supervise": {"log", "model"},
    "option": set(),
    "net": {"log", "option"},
    "model": set(),
    "catalog": {"model"},
    "sources": {"model", "catalog", "option", "log", "net", "supervise"},
    "kube": {"model", "log", "net", "option", "supervise"},  # reads its files as options are read
    "host": {"model"},
    "sharing": {"model", "catalog"},
    "ledger": {"model"},
    "insight": {"model", "catalog", "numbers"},
    "agent": {
        "model",
        "catalog",
        "sources",
        "kube",
        "host",
        "sharing",
        "ledger",
        "insight",
        "log",
        "feed",
        "supervise",
    },
    "cluster": {
        "model",
        "catalog",
        "sources",
        "kube",
        "sharing",
        "insight",
        "option",
        "log",
        "net",
        "feed",
        "supervise",
    },
    "views": {"model", "catalog", "insight", "numbers", "option"},
    "doctor": {
        "model",
        "catalog",
        "insight",
        "numbers",
        "views",
    },  # its findings use the same words as the views
    "serve": {"model", "views", "option", "log", "supervise"},
    "push": {"model", "net", "option"},  # reads its variables as options are read
    "config": {"option", "model", "sources", "cluster", "views"},
    "assembly": {*_NODE, *_PAGES},
    "library": {*_NODE, *_PAGES, "assembly"},
    "cli": {*_NODE, *_PAGES, "assembly"},
    "__main__": {"cli"},
}

# Rooms that do no I/O and read no clock, and the modules that they may not import.
PURE = {"model", "catalog", "sharing", "ledger", "insight", "numbers", "views", "doctor"}
IO = {
    "aiohttp", "asyncio", "ctypes", "fcntl", "grpclib", "http", "importlib", "mmap", "multiprocessing", "os",
    "pathlib", "pynvml", "random", "secrets", "select", "shutil", "signal", "socket", "ssl", "subprocess", "sys",
    "tempfile", "threading", "time", "urllib", "yaml",
}  # fmt: skip

# What else reads a file or a clock.
IMPURE_CALLS = {"open", "__import__", "now", "utcnow", "today"}

# Rooms with modules that must not import each other. The sets name the modules that all of them may import.
STRANGERS: Mapping[str, set[str]] = {
    "podgpu.sources": {"child", "merged", "parent", "pipe", "registry"},
    "podgpu.sharing": {"detection", "folders", "inventory", "kube_cards", "resolve", "system"},
    "podgpu.views.dialects": {"_dcgm", "_hami_names", "_pod_tenant"},
}

EXCEPTIONS = {
    ("podgpu.sharing.hami.cache_files", "os"),  # opens a tenant's file, with care
    ("podgpu.sharing.inventory", "pathlib"),  # has the path of the host's root, but opens nothing
    ("podgpu.sharing.hami.cache_files", "open()"),
}
# Packages that find their own modules. The modules themselves may not.
FINDERS = {"podgpu.sharing", "podgpu.views.dialects"}


def violations(graph: grimp.ImportGraph) -> Iterator[str]:
    ours = sorted(module for module in graph.modules if _room(module))
    for room in sorted({_room(module) for module in ours} - MAY_IMPORT.keys()):
        yield f"{ROOT}.{room}: there is no row for this room; say in tools/walls.py what it may import"
    for module in ours:
        for imported in sorted(graph.find_modules_directly_imported_by(module)):
            problem = _problem(module, imported)
            if problem and not _is_exception(module, imported):
                yield f"{module} imports {imported}: {problem}"


def _problem(module: str, imported: str) -> str:
    room, other = _room(module), _room(imported)
    if not other:
        return f"{room} does no I/O" if room in PURE and imported in IO else ""
    if other == room:
        return _between_strangers(module, imported)
    may = MAY_IMPORT.get(room, set()) | EVERYWHERE
    return "" if other in may else f"{room} may import {', '.join(sorted(may))}"


def _between_strangers(module: str, imported: str) -> str:
    for parent, shared in STRANGERS.items():
        one, other = _child(parent, module), _child(parent, imported)
        if one and other and one != other and other not in shared:
            return f"modules of {parent} may not import each other"
    return ""


def _child(parent: str, module: str) -> str:
    return module.removeprefix(f"{parent}.").partition(".")[0] if module.startswith(f"{parent}.") else ""


def _room(module: str) -> str:
    """Return `views` for `podgpu.views.json`, and nothing for the package itself or other packages."""
    return _child(ROOT, module)


def _is_exception(module: str, imported: str) -> bool:
    return (imported == "importlib" and module in FINDERS) or any(
        f"{module}.".startswith(f"{one}.") and f"{imported}.".startswith(f"{other}.")
        for one, other in EXCEPTIONS
    )


def impure_calls(package: Path) -> Iterator[str]:
    """Find calls in pure rooms that no import gives away."""
    for path in sorted(package.rglob("*.py")):
        module = ".".join((ROOT, *path.relative_to(package).with_suffix("").parts)).removesuffix(".__init__")
        if _room(module) not in PURE:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = _called(node)
            if name in IMPURE_CALLS and not _is_exception(module, f"{name}()"):
                yield f"{module} calls {name}(): {_room(module)} does no I/O and reads no clock"


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def main() -> int:
    TopologicalSorter(MAY_IMPORT).prepare()  # raises if the table has a cycle
    graph = grimp.build_graph(ROOT, include_external_packages=True, cache_dir=None)
    spec = find_spec(ROOT)
    (folder,) = spec.submodule_search_locations if spec and spec.submodule_search_locations else ("",)
    found = [*violations(graph), *impure_calls(Path(folder))]
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
