"""Finds code that no test depends on: changes one thing of a module at a time and runs the tests that mirror it.

A mutant that the tests do not notice survives. The sources are changed in a temporary copy, not in the working tree.
"""

import argparse
import ast
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import cache_from_source
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path("src/podgpu")

PYTEST = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider")
QUICK = ("-m", "not alone and not slow")  # tests that start whole programs take too long
NO_TESTS = 5  # pytest's exit status
MOST_BYTES = 4 << 30  # of memory: a mutant may allocate without end
LEAST_SECONDS, PATIENCE = 20.0, 4.0  # a mutant may take this many times as long as the unchanged module

BOUNDARIES = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}
EXTREMES = {"min": "max", "max": "min"}
SMALL = 10  # an increment of a larger constant would hardly show: it is doubled or halved
DECLARATIONS = frozenset({"annotation", "returns", "decorator_list", "type_params"})


class Mutant(NamedTuple):
    line: int
    old: str
    new: str
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    """Make every change, each in the otherwise unchanged source."""
    tree = ast.parse(source)
    for node, put in _places(tree):
        for changed in _changes(node):
            put(changed)
            old, new = (ast.unparse(part).splitlines()[0] for part in (node, changed))
            yield Mutant(node.lineno, old, new, ast.unparse(tree))
            put(node)


def _places(parent: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, Callable[[ast.AST], None]]]:
    """Yield the expressions and statements below a node, each with a function that puts another in its place."""
    for name, value in ast.iter_fields(parent):
        if name in DECLARATIONS or (isinstance(parent, ast.ClassDef) and name == "keywords"):
            continue
        is_list = isinstance(value, list)
        for position, node in enumerate(value if is_list else [value]):
            if isinstance(node, ast.expr | ast.stmt):
                yield node, partial(value.__setitem__, position) if is_list else partial(setattr, parent, name)
            if isinstance(node, ast.AST):
                yield from _places(node)


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Constant(value):
            yield from map(ast.Constant, _other_values(value))
        case ast.Call(ast.Name(name)) if name in EXTREMES:
            yield _with(node, func=ast.Name(EXTREMES[name]))
        case ast.IfExp(_, then, otherwise):
            yield from (then, otherwise)
        case ast.If(ast.Name() | ast.Attribute() | ast.Call() | ast.NamedExpr() as test):
            yield _with(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.Return(ast.AST() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call() | ast.Await()):
            yield ast.Pass()
        case _:
            yield from _other_operators(node)


def _other_operators(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(ops=operators):
            yield ast.UnaryOp(ast.Not(), node)
            for position, operator in enumerate(operators):
                if other := BOUNDARIES.get(type(operator)):
                    yield _with(node, ops=[*operators[:position], other(), *operators[position + 1 :]])
        case ast.BoolOp(operator):
            yield _with(node, op=ast.Or() if isinstance(operator, ast.And) else ast.And())
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if type(operator) in ARITHMETIC:
            yield _with(node, op=ARITHMETIC[type(operator)]())
        case ast.UnaryOp(ast.Not(), operand):
            yield operand


def _with(node: ast.AST, **fields: object) -> ast.AST:
    return type(node)(**{**vars(node), **fields})


def _other_values(value: object) -> Iterator[bool | int | float]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1) if value <= SMALL else (value * 2, value // 2)
    elif isinstance(value, float):
        yield from (value * 2, value / 2) if value else (1.0,)


def suites(root: Path, module: Path) -> list[list[str]]:
    """Return pytest's arguments for each round of tests: all of the module's own, then the quick ones of its room."""
    inner = module.relative_to(PACKAGE)
    name = inner.parent.name if inner.stem == "__init__" else inner.stem
    mirror = Path("tests", inner.parent)
    own = [str(path) for path in (mirror / f"test_{name}.py", mirror / name) if (root / path).exists()]
    rooms = [f"tests/{folder}" for folder in inner.parents if folder.parts and (root / "tests" / folder).exists()]
    ignored = [f"--ignore={path}" for path in own + rooms]
    quick = [[room, *QUICK, *ignored[: len(own) + number]] for number, room in enumerate(rooms)]
    return [own, *quick] if own else quick


class Trial:
    """Runs the tests of a module against a copy of the sources, in which only that module changes."""

    def __init__(self, root: Path, module: Path, workspace: Path) -> None:
        self._root, self._workspace, self._module = root, workspace, workspace / module
        shutil.copytree(root / PACKAGE, workspace / PACKAGE)
        self._suites, self._limits = suites(root, module), list[tuple[list[str], float]]()

    def prepare(self) -> str:
        """Run the tests with the unchanged module, and return what they print if they fail."""
        for suite in self._suites:
            began = time.monotonic()
            status, output = self._run(suite, limit=None)
            if status == 0:
                self._limits.append((suite, max(LEAST_SECONDS, PATIENCE * (time.monotonic() - began))))
            elif status != NO_TESTS:
                return f"{output}pytest exited with {status}"
        return "" if self._limits else "no tests mirror this module"

    def survives(self, mutant: Mutant) -> bool:
        self._module.write_text(mutant.source, encoding="utf-8")
        # Python would trust the compiled file if the new source has the same length and is of the same second.
        Path(cache_from_source(self._module)).unlink(missing_ok=True)
        return all(self._run(suite, limit)[0] == 0 for suite, limit in self._limits)

    def _run(self, suite: Sequence[str], limit: float | None) -> tuple[int, str]:
        environment = os.environ | {
            "PYTHONPATH": str(self._workspace / PACKAGE.parent),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(self._workspace / ".hypothesis"),
            "PODGPU_TEST_PROFILE": "quick",
        }
        command = (sys.executable, *PYTEST, *suite)
        with Popen(command, cwd=self._root, env=environment, stdout=PIPE, text=True, process_group=0) as process:
            resource.prlimit(process.pid, resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
            try:
                output = process.communicate(timeout=limit)[0]
            except TimeoutExpired:
                output = ""
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # and what the tests started
        return process.returncode, output


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("module", help="such as ledger/book.py or podgpu.ledger.book")
    parser.add_argument("--lines", metavar="A-B", default="1-9999", help="change only these lines")
    parser.add_argument("--most", metavar="N", type=int, default=20, help="how many mutants to try (%(default)s)")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="of the choice among them (%(default)s)")
    options = parser.parse_args(arguments)

    name = options.module.removesuffix(".py").replace(".", "/").removeprefix("src/").removeprefix("podgpu/")
    module = PACKAGE / (f"{name}/__init__.py" if (root / PACKAGE / name).is_dir() else f"{name}.py")
    first, last = map(int, options.lines.split("-"))
    found = [mutant for mutant in mutants((root / module).read_text(encoding="utf-8")) if first <= mutant.line <= last]
    chosen = random.Random(options.seed).sample(found, min(options.most, len(found)))  # noqa: S311
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        trial = Trial(root, module, Path(folder))
        if failure := trial.prepare():
            parser.exit(2, f"{failure}\nThe tests of {module} must pass before it is changed.\n")
        survivors = 0
        for mutant in filter(trial.survives, sorted(chosen)):
            survivors += 1
            sys.stdout.write(f"{module}:{mutant.line}: {mutant.old} -> {mutant.new}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{module}: {survivors} of {len(chosen)} mutants survived; {len(found)} can be made\n")


if __name__ == "__main__":
    main()
