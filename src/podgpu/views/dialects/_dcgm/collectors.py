"""dcgm-exporter's file of counters: a CSV of field, type and HELP."""

import csv
import re
from dataclasses import dataclass

from podgpu.errors import UserError

TYPES = ("gauge", "counter", "label")
COLUMNS = 3

_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_FORM = "write FIELD, TYPE, HELP, such as: DCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (in C)."


@dataclass(frozen=True, slots=True)
class Collector:
    """One line. `type` is one of TYPES; a `label` is a fact that every series carries."""

    field: str
    type: str
    help: str


@dataclass(frozen=True, slots=True)
class Collectors:
    """The file as it was when it was read. A field that it lists twice counts once, as it stands first."""

    path: str
    listed: tuple[Collector, ...]


def collectors(path: str, text: str) -> Collectors:
    lines = text.split("\n")
    found = [
        _collector(line.strip(), f"{path}: line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip(' \t\r,"') and not line.lstrip().startswith("#")
    ]
    if not found:
        raise UserError(f"{path}: no line names a counter; {_FORM}")
    first = {one.field: one for one in reversed(found)}
    return Collectors(path, tuple(first[field] for field in dict.fromkeys(one.field for one in found)))


def _collector(line: str, place: str) -> Collector:
    columns = _columns(line, place)
    if len(columns) > COLUMNS:
        raise UserError(f"{place}: {len(columns)} columns; put a HELP that has commas in double quotes")
    if len(columns) < COLUMNS:
        raise UserError(f"{place}: {len(columns)} of 3 columns; {_FORM}")
    field, kind, words = columns
    if not _FIELD.fullmatch(field):
        raise UserError(f"{place}: {field[:40]!r} is not the name of a field; {_FORM}")
    if kind not in TYPES:
        raise UserError(f"{place}: {kind[:40]!r} is not a type; write gauge, counter or label")
    return Collector(field, kind, words)


def _columns(line: str, place: str) -> list[str]:
    try:
        (columns,) = csv.reader([line], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError):
        raise UserError(f"{place}: a double quote is not closed, or text follows it; {_FORM}") from None
    return [column.strip() for column in columns]
