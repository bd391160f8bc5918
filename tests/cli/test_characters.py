"""Where plain characters are chosen: in what people read, and not in data."""

import subprocess
import sys
from argparse import ArgumentParser
from io import BytesIO, TextIOWrapper

import pytest

from podgpu.cli._characters import choose_characters
from podgpu.cli._output import add_table_output

ADVICE = "23% (12–34)"


def written(monkeypatch: pytest.MonkeyPatch, *argv: str) -> bytes:
    parser = ArgumentParser()
    add_table_output(parser)
    out = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(out, encoding="utf-8", write_through=True))
    choose_characters(parser.parse_args(argv))
    print(ADVICE, end="")
    return out.getvalue()


@pytest.mark.parametrize("form", ["table", "wide", "markdown"])
def test_what_people_read_is_plain_if_they_want_it(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert written(monkeypatch, "--ascii", "-o", form) == b"23% (12-34)"


@pytest.mark.parametrize("form", ["json", "yaml", "csv"])
def test_data_is_never_changed(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert written(monkeypatch, "--ascii", "-o", form).decode() == ADVICE


@pytest.mark.parametrize(("locale", "is_plain"), [("C", True), ("C.UTF-8", False)])
def test_the_locale_chooses_too(locale: str, is_plain: bool) -> None:
    command = [sys.executable, "-m", "podgpu", "snapshot", "--source=simulator"]
    done = subprocess.run(command, env={"LC_ALL": locale, "PATH": ""}, capture_output=True, check=True)
    assert done.stdout.isascii() == is_plain
    assert b"% (" in done.stdout or b"C " in done.stdout
