"""Prints rows as a table, as Markdown, or as JSON, YAML or CSV for other programs."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Mapping
from textwrap import wrap
from typing import Any

import msgspec

from podgpu.cli._commands import add_output
from podgpu.cli._terminal import columns as terminal_columns
from podgpu.errors import UserError
from podgpu.insight.selection import PodSelection, label_tests
from podgpu.views.row_table import R, RowTable, as_document, csv_text, json_text
from podgpu.views.text import NO_LIMIT, printable, table_lines

FOR_PEOPLE = ("table", "wide", "markdown")


def is_for_people(arguments: Namespace) -> bool:
    """Whether sentences may stand above and below the table."""
    return arguments.output in FOR_PEOPLE and not arguments.no_headers


def add_table_output(parser: ArgumentParser, *more: str) -> None:
    """`more` are formats that the command writes by itself."""
    add_output(parser, (*FORMATS, *more))
    parser.add_argument("--no-headers", action="store_true", help="print no line of headings")


def add_selection(parser: ArgumentParser) -> None:
    """Add the flags that choose pods, spelled as kubectl spells them."""
    parser.add_argument("-n", "--namespace", metavar="NAMESPACE", help="only pods of this namespace")
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="pods of all namespaces, the default")
    parser.add_argument(
        "-l",
        "--selector",
        metavar="SELECTOR",
        default="",
        help="only pods with these labels, such as team=search; an agent shows those of --kube.pod-labels",
    )
    parser.add_argument("--node", metavar="NODE", default="", help="only this node")


def selection(arguments: Namespace) -> PodSelection:
    if arguments.namespace and arguments.all_namespaces:
        raise UserError("-n means one namespace and -A all of them; give one of them only")
    return PodSelection(arguments.namespace or "", arguments.node, label_tests(arguments.selector))


def print_table(table: RowTable[R], arguments: Namespace) -> None:
    """Print in the format of `-o`. Like kubectl, say on stderr that nothing was found."""
    print(_WRITERS[arguments.output](table, arguments), end="")
    if not table.rows and arguments.output in ("table", "wide"):
        print(table.empty, file=sys.stderr)


def print_sentences(sentences: Iterable[str], arguments: Namespace) -> None:
    """Print them below a table, if that is for people."""
    if is_for_people(arguments) and (below := list(sentences)):
        print()
        print_lines(below)


def print_lines(sentences: Iterable[str]) -> None:
    """Print each sentence on as many lines as it takes."""
    for sentence in sentences:
        print(*_wrapped(sentence, terminal_columns()), sep="\n")


def print_problems(problems: Iterable[str]) -> None:
    for problem in problems:
        first, *more = _wrapped(problem, terminal_columns(sys.stderr) - 2)
        print(f"! {first}", *(f"  {line}" for line in more), sep="\n", file=sys.stderr)


def _wrapped(sentence: str, width: int) -> list[str]:
    return wrap(printable(sentence), width, break_long_words=False, break_on_hyphens=False) or [""]


def _text(table: RowTable[R], arguments: Namespace) -> str:
    if not table.rows:
        return ""
    is_wide = arguments.output == "wide"
    columns = [column for column in table.columns if is_wide or not column.wide]
    cells = [] if arguments.no_headers else [[column.title for column in columns]]
    cells += [[printable(column.text(row)) for column in columns] for row in table.rows]
    numbers = tuple(at for at, column in enumerate(columns) if column.number)
    width = NO_LIMIT if is_wide else terminal_columns()
    return "\n".join(table_lines(cells, numbers, width, columns[0].cut)) + "\n"


def _yaml(table: RowTable[R], _: Namespace) -> str:
    import yaml

    document = msgspec.to_builtins(as_document(table))
    return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=10_000))


def _markdown(table: RowTable[R], _: Namespace) -> str:
    """Write all columns, with whole names."""
    heads = [column.title for column in table.columns]
    ruler = ["---:" if column.number else "---" for column in table.columns]
    rows = [[printable(column.text(row)) for column in table.columns] for row in table.rows]
    escaped = ([cell.replace("|", r"\|") for cell in cells] for cells in (heads, ruler, *rows))
    return "".join(f"| {' | '.join(cells)} |\n" for cells in escaped)


_WRITERS: Mapping[str, Callable[[RowTable[Any], Namespace], str]] = {
    "table": _text,
    "wide": _text,
    "json": lambda table, _: json_text(table),
    "yaml": _yaml,
    "csv": lambda table, arguments: csv_text(table, headers=not arguments.no_headers),
    "markdown": _markdown,
}
FORMATS = tuple(_WRITERS)
