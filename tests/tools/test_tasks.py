"""Tasks are made in one module: whoever makes one elsewhere has nobody who starts it again."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import podgpu

ROOT = Path(podgpu.__file__).parent
HOME = ROOT / "supervise.py"
MAKERS = {"create_task", "ensure_future", "TaskGroup"}


def made(source: str) -> Iterator[int]:
    """Yield the lines that make a task, or name what makes one."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in MAKERS:
            yield node.lineno
        elif isinstance(node, ast.ImportFrom):
            yield from (node.lineno for name in node.names if name.name in MAKERS)


def test_only_one_module_makes_tasks() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted(ROOT.rglob("*.py"))
        if path != HOME
        for line in made(path.read_text())
    ]
    assert not found, "use Supervisor.supervise for long work, brief for what ends by itself"
    assert list(made(HOME.read_text()))


@pytest.mark.parametrize(
    "line",
    [
        "asyncio.create_task(work())",
        "asyncio.get_running_loop().create_task(work())",
        "self._loop.create_task(work())",
        "asyncio.ensure_future(work())",
        "group.create_task(work())",
        "from asyncio import create_task",
        "make = asyncio.create_task",
        "async def run():\n    async with asyncio.TaskGroup() as group: pass",
    ],
)
def test_it_sees_every_way_to_make_one(line: str) -> None:
    assert list(made(line))
