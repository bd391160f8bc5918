"""An option that was renamed: for one minor version its old names work, and the log says what to write instead."""

from dataclasses import replace
from pathlib import Path

import pytest

from podgpu.config import OPTIONS
from podgpu.config.precedence import load
from podgpu.errors import UserError
from tools.chart import schema
from tools.configuration import markdown


@pytest.fixture(autouse=True)
def interval_was_every(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPTIONS, "interval", replace(OPTIONS["interval"], was="--read.every"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "podgpu.yaml"


def test_the_old_variable_works() -> None:
    config = load({}, {"PODGPU_READ_EVERY": "2s"})
    assert (config.interval, config.outdated) == (2.0, (("PODGPU_READ_EVERY", "PODGPU_INTERVAL"),))


def test_the_old_key_of_the_file_works(file: Path) -> None:
    file.write_text("read:\n  every: 2s\n")
    config = load({"config_file": [str(file)]}, {})
    assert (config.interval, config.outdated) == (2.0, ((f"{file}: read.every", "interval"),))


def test_a_mistake_is_reported_by_the_name_that_was_used() -> None:
    with pytest.raises(UserError, match=r"^PODGPU_READ_EVERY: "):
        load({}, {"PODGPU_READ_EVERY": "soon"})


def test_the_present_name_wins_in_the_same_place(file: Path) -> None:
    file.write_text("interval: 3s\nread.every: 2s\n")
    for config in (
        load({"interval": ["3s"], "read_every": ["2s"]}, {}),
        load({}, {"PODGPU_INTERVAL": "3s", "PODGPU_READ_EVERY": "2s"}),
        load({"config_file": [str(file)]}, {}),
    ):
        assert (config.interval, config.outdated) == (3.0, ())


def test_an_old_flag_wins_over_a_variable() -> None:
    assert load({"read_every": ["2s"]}, {"PODGPU_INTERVAL": "3s"}).interval == 2.0


def test_docs_and_chart_know_the_old_name() -> None:
    assert "Was `--read.every`, which still works." in markdown()
    assert '"read.every"' in schema.text()
