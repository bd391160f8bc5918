"""Checks the house rules: short modules and functions, names that say something, no name for two classes.

With --figures it also says how large the sources are.
"""

import ast
import sys
import tokenize
from collections.abc import Iterable, Iterator
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TREES = ("src", "tests", "tools", "bench")

MODULE_LINES = 400
FUNCTION_LINES = 60
EMPTY_NAMES = frozenset({"utils", "helpers", "common", "base", "manager", "misc"})
SUFFIXES = frozenset({".py", ".c", ".h"})
GENERATED = "_gen"
SOURCE = "src"
LAYOUT = frozenset(
    {
        tokenize.COMMENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
        tokenize.INDENT,
        tokenize.NEWLINE,
        tokenize.NL,
    }
)


def violations(root: Path) -> Iterator[str]:
    files = sorted(path for tree in TREES for path in (root / tree).rglob("*") if _counts(path.relative_to(root)))
    for path in files:
        yield from _file(path, path.relative_to(root))
    yield from _folders(path.relative_to(root) for path in files)
    yield from _homonyms(root, [path for path in files if root / SOURCE in path.parents])


def _counts(path: Path) -> bool:
    return path.suffix in SUFFIXES and not any(part == GENERATED or part.startswith(".") for part in path.parts)


def _file(path: Path, shown: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    if lines > MODULE_LINES:
        yield f"{shown}:{lines}: {lines} lines, at most {MODULE_LINES}: split it"
    if path.suffix == ".py":
        if path.stem in EMPTY_NAMES:
            yield f"{shown}:1: the name {path.stem} says nothing: name what it holds"
        yield from _functions(ast.parse(text), shown)


def _functions(tree: ast.AST, shown: Path) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            length = node.end_lineno - node.lineno + 1
            if length > FUNCTION_LINES:
                at_most = f"at most {FUNCTION_LINES}: split it"
                yield f"{shown}:{node.lineno}: {node.name} has {length} lines, {at_most}"


def _folders(files: Iterable[Path]) -> Iterator[str]:
    for folder in sorted({path.parent for path in files}):
        if folder.name in EMPTY_NAMES:
            yield f"{folder}:1: the name {folder.name} says nothing: name what it holds"


def _homonyms(root: Path, files: Iterable[Path]) -> Iterator[str]:
    """Find names of classes that stand for two things. A leading underscore makes no other name."""
    first: dict[str, str] = {}
    for path in files:
        if path.suffix != ".py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                name = node.name.lstrip("_")
                place = f"{path.relative_to(root)}:{node.lineno}"
                if name in first:
                    yield f"{place}: homonym: {first[name]} has a class {name} too: name one of them more exactly"
                else:
                    first[name] = place


def figures(root: Path) -> str:
    """Say how large the sources are. Generated modules count too."""
    paths = sorted((root / SOURCE).rglob("*.py"))
    texts = [path.read_text(encoding="utf-8") for path in paths]
    modules, folders = len(paths), len({path.parent for path in paths})
    lines, code = sum(text.count("\n") for text in texts), sum(map(_lines_of_code, texts))
    return f"{SOURCE}: {modules} modules in {folders} folders, {lines:,} lines, {code:,} of them code"


def _lines_of_code(text: str) -> int:
    """Count the lines with more than blanks, comments and docstrings."""
    found: set[int] = set()
    begins_statement = True
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type in LAYOUT:
            begins_statement = begins_statement or token.type == tokenize.NEWLINE
            continue
        if not (begins_statement and token.type == tokenize.STRING):
            found.update(range(token.start[0], token.end[0] + 1))
        begins_statement = False
    return len(found)


def main(root: Path = ROOT) -> int:
    lines = list(violations(root))
    sys.stdout.writelines(f"{line}\n" for line in lines)
    if "--figures" in sys.argv[1:]:
        sys.stdout.write(f"{figures(root)}\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
