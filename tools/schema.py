"""Writes docs/snapshot.md: a table for each struct of the JSON snapshot, read from the source code of the model.

The docstring of a class describes the class, and the comment after a field describes the field. So the page cannot
disagree with the code, and a new field is described where it is declared.
"""

import ast
import inspect
import io
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import Struct

from podgpu import model
from podgpu.model import SCHEMA, Snapshot

# The JSON types of Python types.
_PLAIN = {"str": "text", "int": "integer", "float": "number", "bool": "boolean"}

_INTRODUCTION = f"""\
# The JSON snapshot

Generated from the model. To change it, change a comment there and run `make docs`.

`GET /api/v1/snapshot`, `podgpu snapshot -o json` and the Python library give the same document: everything that the
agent knows, already joined. A node has cards; a card has readings, MIG instances, tenants and the rest; a tenant has
its claims, processes and booking. A reader walks this tree and never has to match UUIDs or PIDs.

* `schema` is {SCHEMA}. It changes when a field changes its meaning, its name or its place. New fields may come at any
  time: ignore those that you do not know.
* What is unknown is absent, never 0 and never `null`. Such fields are marked *may be absent*.
* Counters (`…_us`, `…_mj`, `count`) are integers that only grow while the agent runs. The tenants, former tenants and
  rest of a card add up exactly to its balance.
"""


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    kind: str
    comment: str


@dataclass(frozen=True, slots=True)
class Table:
    """One struct of the document."""

    name: str
    description: str
    fields: tuple[Field, ...]


def markdown() -> str:
    """Write docs/snapshot.md."""
    return "\n".join([_INTRODUCTION, *map(_section, tables())])


def tables() -> list[Table]:
    """List each struct of a snapshot once, the snapshot itself first."""
    found: dict[str, Table] = {}
    waiting = [Snapshot.__name__]
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found[name], inner = _read(getattr(model, name))
            waiting += inner
    return list(found.values())


def _read(struct: type[Struct]) -> tuple[Table, list[str]]:
    """Return the table of a struct, and the names of the structs in its fields."""
    source = inspect.getsource(sys.modules[struct.__module__])
    tree = next(
        node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == struct.__name__
    )
    comments = dict(_comments(source))
    lines = [node for node in tree.body if isinstance(node, ast.AnnAssign)]
    fields = [Field(ast.unparse(line.target), _kind(line.annotation), comments.get(line.lineno, "")) for line in lines]
    inner = [name for line in lines for name in _structs(line.annotation)]
    return Table(struct.__name__, ast.get_docstring(tree) or "", tuple(fields)), inner


def _comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


def _structs(annotation: ast.expr) -> Iterator[str]:
    for node in ast.walk(annotation):
        if isinstance(node, ast.Name) and isinstance(getattr(model, node.id, None), type):
            yield node.id


def _kind(annotation: ast.expr) -> str:
    """Write `list of [Card](#card)`, `number, may be absent`."""
    match annotation:
        case ast.BinOp(left=inside, right=ast.Constant(value=None)):
            return f"{_kind(inside)}, may be absent"
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=[inside, ast.Constant()])):
            return f"list of {_kind(inside)}"
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=inside)):
            return f"({', '.join(map(_kind, inside))})"
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[_, inside])):
            return f"map to {_kind(inside)}"
        case ast.Name(id=name):
            return _PLAIN.get(name) or f"[{name}](#{name.lower()})"
    raise ValueError(f"{ast.unparse(annotation)}: say in tools/schema.py what it is in JSON")


def _section(table: Table) -> str:
    rows = [f"| `{field.name}` | {field.kind} | {field.comment} |" for field in table.fields]
    if table.name == Snapshot.__name__:
        rows.insert(0, f"| `schema` | integer | {SCHEMA} |")
    return "\n".join(
        [
            f"## {table.name}\n",
            f"{table.description}\n",
            "| field | type | meaning |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )
