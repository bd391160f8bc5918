"""The rows of commands in every form, for people and for programs."""

import csv
import json
from argparse import ArgumentParser

import pytest
import yaml
from msgspec import Struct

from podgpu.cli._output import add_selection, add_table_output, print_table, selection
from podgpu.errors import UserError
from podgpu.insight.selection import EVERYTHING
from podgpu.views.row_table import Column, RowTable, fields_of


class Thing(Struct, frozen=True):
    name: str
    size: int | None = None
    parts: tuple[str, ...] = ()


COLUMNS = (
    Column[Thing]("NAME", lambda row: row.name),
    Column[Thing]("SIZE", lambda row: "-" if row.size is None else str(row.size), number=True),
    Column[Thing]("PARTS", lambda row: ",".join(row.parts), wide=True),
)
ROWS = (Thing("one", 1024, ("a", "b")), Thing("=cmd()", None))


def printed(capsys: pytest.CaptureFixture[str], *argv: str, rows: tuple[Thing, ...] = ROWS) -> str:
    parser = ArgumentParser()
    add_table_output(parser)
    print_table(
        RowTable(fields_of(Thing), rows, COLUMNS, {"taken_at": 1.5}, "no thing was found"), parser.parse_args(argv)
    )
    return capsys.readouterr().out


def test_a_table_has_only_what_fits_and_wide_has_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys) == "NAME    SIZE\none     1024\n=cmd()     -\n"
    assert printed(capsys, "-o", "wide", "--no-headers") == "one     1024  a,b\n=cmd()     -\n"


def test_a_pipe_gets_whole_names_and_a_terminal_the_ends_of_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"search/{'score-' * 20}kd5vt"
    monkeypatch.setenv("COLUMNS", "40")
    assert name in printed(capsys, rows=(Thing(name, 1),))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert printed(capsys, rows=(Thing(name, 1),)) == f"{'NAME':34}  SIZE\nsearch/score-score-score-sc…-kd5vt     1\n"


def test_json_and_yaml_have_raw_values_and_leave_out_the_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(printed(capsys, "-o", "json"))
    assert document == {
        "schema": 1,
        "taken_at": 1.5,
        "rows": [{"name": "one", "size": 1024, "parts": ["a", "b"]}, {"name": "=cmd()", "parts": []}],
    }
    assert yaml.safe_load(printed(capsys, "-o", "yaml")) == document


def test_csv_has_every_field_and_no_formula(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(printed(capsys, "-o", "csv").splitlines()))
    assert rows == [
        {"name": "one", "size": "1024", "parts": "a b"},
        {"name": "'=cmd()", "size": "", "parts": ""},
    ]
    assert printed(capsys, "-o", "csv", rows=()) == "name,size,parts\n"


def test_that_nothing_was_found_is_said_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    parser = ArgumentParser()
    add_table_output(parser)
    print_table(RowTable(fields_of(Thing), (), COLUMNS, empty="no thing was found"), parser.parse_args([]))
    assert capsys.readouterr() == ("", "no thing was found\n")


def test_one_namespace_and_all_of_them_contradict_each_other() -> None:
    parser = ArgumentParser()
    add_selection(parser)
    assert selection(parser.parse_args(["-n", "ml"])).namespace == "ml"
    assert selection(parser.parse_args(["-A"])) == EVERYTHING
    with pytest.raises(UserError, match="give one of them only"):
        selection(parser.parse_args(["-n", "ml", "-A"]))
