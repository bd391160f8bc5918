"""Each wall is breached once, in a copy of the tree, and each breach is reported."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.walls import MAY_IMPORT, PURE

REPOSITORY = Path(__file__).parents[2]

# The room that breaks its wall, and what it imports for that.
BREACHES = {
    "errors": "model",
    "log": "model",
    "feed": "model",
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
# What a pure room must not call, without an import that would give it away.
CALLS = {
    "ledger": "open('/proc/stat')",
    "insight": "datetime.datetime.now()",
    "views": "date.today()",
    "doctor": "__import__('socket')",
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
    return (
        (f"podgpu.{room}", file) if file.exists() else (f"podgpu.{room}.breach", package / room / "breach.py")
    )


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
        add(file, "import socket")
        expected.append(f"{name} imports socket: {room} does no I/O")
    for room, call in CALLS.items():
        name, file = module(package, room)
        add(file, call)
        expected.append(f"{name} calls {call.split('(')[0].rpartition('.')[2]}(): {room} does no I/O")
    for name, other in STRANGERS.items():
        add(package.parent / f"{name.replace('.', '/')}.py", f"import {other}")
        expected.append(f"{name} imports {other}: modules of ")
    (package / "attic").mkdir()
    (package / "attic" / "__init__.py").write_text("import podgpu.model\n")
    expected.append("podgpu.attic: there is no row for this room")
    expected.append("podgpu.attic imports podgpu.model: attic may import errors")
    code, lines = seen(package)
    assert code == 1
    assert [one for one in expected if not any(line.startswith(one) for line in lines)] == []
    assert len(lines) == len(expected)


def test_every_room_of_the_table_is_broken_above() -> None:
    assert BREACHES.keys() == MAY_IMPORT.keys()
