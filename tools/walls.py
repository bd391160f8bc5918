"""Checks the walls between the rooms of podgpu. The table says what each room may import; other imports are errors.

So is a permission that no import uses. A pure room may not open a file or read a clock either, by whatever name. Inside
a room, packages that need each other are a ring, which is an error too.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from importlib.util import find_spec
from pathlib import Path

import grimp

ROOT = "podgpu"
EVERYWHERE = {"errors"}  # any room may raise a UserError

MAY_IMPORT: Mapping[str, set[str]] = {
    room: set(others.split())
    for room, others in {
        "errors": "",
        "log": "",
        "feed": "model",
        "numbers": "",
        "supervise": "log model",
        "option": "",
        "net": "option",
        "model": "",
        "catalog": "",
        "sources": "model catalog option log net supervise",
        "kube": "model log net option supervise",  # reads its files as options are read
        "host": "model",
        "sharing": "model catalog",
        "ledger": "model",
        "insight": "model catalog numbers",
        "history": "model insight",
        "agent": "model catalog sources host sharing ledger insight log feed supervise",
        "cluster": "model catalog sources kube sharing insight option log net feed supervise",
        "views": "model catalog insight numbers option",
        "doctor": "model catalog insight numbers views",  # its findings use the same words as the views
        "serve": "model views option log supervise",
        "push": "model net option",  # reads its variables as options are read
        "config": "option model sources cluster views",
        "assembly": "model catalog sources kube host sharing insight history agent log net supervise views cluster"
        " serve push config",
        "library": "model sources kube sharing agent option net views serve config assembly",
        "cli": "model catalog sources agent option log net supervise insight numbers views cluster serve doctor config"
        " assembly",
        "__main__": "cli",
    }.items()
}

# Rooms that do no I/O and read no clock, and the modules that they may not import.
PURE = {"model", "catalog", "sharing", "ledger", "insight", "numbers", "views", "doctor"}
IO = {
    "aiohttp", "asyncio", "ctypes", "fcntl", "grpclib", "http", "importlib", "mmap", "multiprocessing", "os",
    "pathlib", "pynvml", "random", "secrets", "select", "shutil", "signal", "socket", "ssl", "subprocess", "sys",
    "tempfile", "threading", "time", "urllib", "yaml",
}  # fmt: skip

# What else reads a file or a clock.
IMPURE_CALLS = {"open", "now", "utcnow", "today"}

# Rooms with modules that must not import each other. The sets name the modules that all of them may import.
STRANGERS: Mapping[str, set[str]] = {
    "podgpu.sources": {"child", "child_process", "merged", "player", "protocols", "registry"},
    "podgpu.sharing": {"folders", "inventory", "kube_cards", "system"},
    "podgpu.views.dialects": {"_dcgm", "_hami_names", "_pod_tenant"},
}

EXCEPTIONS = {
    ("podgpu.sharing.hami.cache_files", "os"),  # opens a tenant's file, with care
    ("podgpu.sharing.inventory", "pathlib"),  # has the path of the host's root, but opens nothing
    ("podgpu.sharing.hami.cache_files", "open()"),
}
# Modules that find the others of their package. Nothing else may import by a name that is made up as it runs.
FINDERS = {"podgpu.cli._commands", "podgpu.sharing", "podgpu.sources.registry", "podgpu.views.dialects"}
DYNAMIC = {"import_module", "__import__"}


def violations(graph: grimp.ImportGraph) -> Iterator[str]:
    ours = sorted(module for module in graph.modules if _room(module))
    for room in sorted({_room(module) for module in ours} - MAY_IMPORT.keys()):
        yield f"{ROOT}.{room}: there is no row for this room; say in tools/walls.py what it may import"
    for module in ours:
        for imported in sorted(graph.find_modules_directly_imported_by(module)):
            problem = _problem(module, imported)
            if problem and not _is_exception(module, imported):
                yield f"{module} imports {imported}: {problem}"
    for imported in sorted(graph.find_modules_directly_imported_by(ROOT)):
        yield f"{ROOT} imports {imported}: every room may import {ROOT} itself, so it may import nothing"


def unused_permissions(graph: grimp.ImportGraph, table: Mapping[str, set[str]] = MAY_IMPORT) -> Iterator[str]:
    used: dict[str, set[str]] = {room: set() for room in table}
    for module in graph.modules:
        if _room(module) in used:
            used[_room(module)].update(map(_room, graph.find_modules_directly_imported_by(module)))
    for room, others in table.items():
        for other in sorted(others - used[room]):
            yield f"{ROOT}.{room} does not import {ROOT}.{other}: take {other} from its row in tools/walls.py"


def rings(graph: grimp.ImportGraph) -> Iterator[str]:
    """Find packages inside a room that need each other, directly or through others."""
    needs: defaultdict[str, set[str]] = defaultdict(set)
    for module in filter(_room, graph.modules):
        for imported in graph.find_modules_directly_imported_by(module):
            if _room(imported) == _room(module):
                needs[_package(graph, module)].add(_package(graph, imported))
    reached = {package: _reachable(package, needs) for package in sorted(needs)}
    found = ({other for other in reached[package] if package in reached.get(other, ())} for package in reached)
    for ring in dict.fromkeys(frozenset(ring) for ring in found if ring):
        yield f"{', '.join(sorted(ring))} need each other: move what they share into one of them"


def _package(graph: grimp.ImportGraph, module: str) -> str:
    return module if graph.find_children(module) else module.rpartition(".")[0]


def _reachable(package: str, needs: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    new = {package}
    while new:
        found |= (new := {other for package in new for other in needs.get(package, ()) if other != package} - found)
    return found


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
        child, other = _child(parent, module), _child(parent, imported)
        if child and other and child != other and other not in shared:
            return f"modules of {parent} may not import each other"
    return ""


def _child(parent: str, module: str) -> str:
    return module.removeprefix(f"{parent}.").partition(".")[0] if module.startswith(f"{parent}.") else ""


def _room(module: str) -> str:
    """Return `views` for `podgpu.views.json`, and nothing for the package itself or other packages."""
    return _child(ROOT, module)


def _is_exception(module: str, imported: str) -> bool:
    return (imported == "importlib" and module in FINDERS) or any(
        f"{module}.".startswith(f"{exempt}.") and f"{imported}.".startswith(f"{other}.") for exempt, other in EXCEPTIONS
    )


def forbidden_calls(package: Path) -> Iterator[str]:
    """Find calls that no import gives away: I/O and clocks in pure rooms, imports by name anywhere."""
    for path in sorted(package.rglob("*.py")):
        module = ".".join((ROOT, *path.relative_to(package).with_suffix("").parts)).removesuffix(".__init__")
        room = _room(module)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = _called(node)
            if name in DYNAMIC and module not in FINDERS:
                yield f"{module} calls {name}(): walls cannot see what that imports"
            elif name in IMPURE_CALLS and room in PURE and not _is_exception(module, f"{name}()"):
                yield f"{module} calls {name}(): {room} does no I/O and reads no clock"


def unseen_folders(package: Path) -> Iterator[str]:
    """Find folders whose imports are in no graph."""
    for folder in sorted({path.parent for path in package.rglob("*.py")}):
        if not (folder / "__init__.py").exists():
            name = ".".join((ROOT, *folder.relative_to(package).parts))
            yield f"{name} has no __init__.py: walls cannot see its modules"


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def main() -> int:
    TopologicalSorter(MAY_IMPORT).prepare()  # raises if the table has a cycle
    graph = grimp.build_graph(ROOT, include_external_packages=True, cache_dir=None)
    spec = find_spec(ROOT)
    (folder,) = spec.submodule_search_locations if spec and spec.submodule_search_locations else ("",)
    found = [*violations(graph), *unused_permissions(graph), *rings(graph)]
    found += [*forbidden_calls(Path(folder)), *unseen_folders(Path(folder))]
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
