"""Each wall is breached once, in a copy of the tree, and each breach is reported."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

from tools.walls import MAY_IMPORT, PURE, unused_permissions

REPOSITORY = Path(__file__).parents[2]

# The room that breaks its wall, and what it imports for that.
BREACHES = {
    "errors": "model",
    "log": "model",
    "feed": "views",
    "supervise": "views",
    "option": "config",
    "net": "model",
    "model": "catalog",
    "numbers": "model",
    "catalog": "views",
    "sources": "kube",
    "kube": "catalog",
    "host": "kube",
    "sharing": "kube",
    "ledger": "sharing",
    "insight": "views",
    "history": "views",
    "agent": "views",
    "cluster": "views",
    "views": "config",
    "doctor": "agent",
    "serve": "agent",
    "push": "views",
    "config": "assembly",
    "assembly": "cli",
    "library": "cli",
    "cli": "library",
    "__main__": "agent",
}
# What pure rooms must not import or call, besides sockets.
IMPORTS = {"ledger": ["random", "time"], "doctor": ["multiprocessing", "mmap", "fcntl"]}
CALLS = {
    "ledger": ["datetime.datetime.now()", "open('/proc/stat')"],
    "insight": ["datetime.datetime.now()"],
    "views": ["date.today()"],
}
# What no room may call: the walls would not see what it imports.
DYNAMIC = {
    "doctor": "__import__('socket')",
    "ledger": "importlib.import_module('podgpu.agent')",
    "serve": "import_module('podgpu.agent')",
}
STRANGERS = {
    "podgpu.sources.dcgm.parse": "podgpu.sources.nvml.handle",
    "podgpu.sharing.kai": "podgpu.sharing.gke",
    "podgpu.views.dialects.hami": "podgpu.views.dialects.cadvisor",
}


def seen(package: Path) -> tuple[int, list[str]]:
    """What the tool says of the package in that folder."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.walls"],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(package.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def module(package: Path, room: str) -> tuple[str, Path]:
    """A module of the room, to put a breach into."""
    file = package / f"{room}.py"
    return (f"podgpu.{room}", file) if file.exists() else (f"podgpu.{room}.breach", package / room / "breach.py")


def called(call: str) -> str:
    return call.split("(", maxsplit=1)[0].rpartition(".")[2]


def add(file: Path, line: str) -> None:
    with file.open("a") as opened:
        opened.write(f"\n{line}\n")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    copy = tmp_path / "podgpu"
    shutil.copytree(REPOSITORY / "src/podgpu", copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def test_the_tree_as_it_is_passes(package: Path) -> None:
    assert seen(package) == (0, [])


def test_every_breach_is_seen(package: Path) -> None:
    expected = []
    for room, other in BREACHES.items():
        name, file = module(package, room)
        add(file, f"import podgpu.{other}")
        expected.append(f"{name} imports podgpu.{other}: {room} may import ")
    for room in PURE:
        name, file = module(package, room)
        for imported in ("socket", *IMPORTS.get(room, [])):
            add(file, f"import {imported}")
            expected.append(f"{name} imports {imported}: {room} does no I/O")
        for call in CALLS.get(room, []):
            add(file, call)
            expected.append(f"{name} calls {called(call)}(): {room} does no I/O")
    for room, call in DYNAMIC.items():
        name, file = module(package, room)
        add(file, call)
        expected.append(f"{name} calls {called(call)}(): walls cannot see")
    add(package / "__init__.py", "from podgpu.model import Snapshot")
    expected.append("podgpu imports podgpu.model: every room may import podgpu itself")
    for name, other in STRANGERS.items():
        add(package.parent / f"{name.replace('.', '/')}.py", f"import {other}")
        expected.append(f"{name} imports {other}: modules of ")
    (package / "serve" / "loft").mkdir()
    (package / "serve" / "loft" / "breach.py").write_text("import podgpu.agent\n")
    expected.append("podgpu.serve.loft has no __init__.py: walls cannot see")
    (package / "attic").mkdir()
    (package / "attic" / "__init__.py").write_text("import podgpu.model\n")
    expected.append("podgpu.attic: there is no row for this room")
    expected.append("podgpu.attic imports podgpu.model: attic may import errors")
    code, lines = seen(package)
    assert code == 1
    assert [start for start in expected if not any(line.startswith(start) for line in lines)] == []
    assert len(lines) == len(expected)


@pytest.mark.parametrize(
    "imports",
    [
        {"one.a": "two.b", "two.b": "one.a"},
        {"one.a": "two.b", "two.c": "three.d", "three": "one"},
        {"one.a": "top", "top": "one.a"},
        {"one.a": "one.inner.b", "one.inner.b": "one.c", "one.c": "two"},
    ],
    ids=["two folders", "three folders", "a room and its folder", "a folder and its inner one"],
)
def test_folders_of_a_room_that_need_each_other_are_a_ring(package: Path, imports: dict[str, str]) -> None:
    room = package / "ledger"
    for folder in ("one", "one/inner", "two", "three"):
        (room / folder).mkdir()
        (room / folder / "__init__.py").touch()
    for name in ("top", "one/a", "one/c", "one/inner/b", "two/b", "two/c", "three/d"):
        (room / f"{name}.py").touch()
    assert seen(package) == (0, [])
    for name, other in imports.items():
        file = room / name.replace(".", "/")
        add(
            file / "__init__.py" if file.is_dir() else file.with_suffix(".py"),
            f"import podgpu.ledger.{other}",
        )
    code, (line,) = seen(package)
    assert code == 1
    assert " need each other: " in line


def test_a_permission_that_no_import_uses_is_named() -> None:
    graph = grimp.build_graph("podgpu", cache_dir=None)
    assert list(unused_permissions(graph, {**MAY_IMPORT, "model": {"views"}})) == [
        "podgpu.model does not import podgpu.views: take views from its row in tools/walls.py"
    ]


def test_every_room_of_the_table_is_broken_above() -> None:
    assert BREACHES.keys() == MAY_IMPORT.keys()
