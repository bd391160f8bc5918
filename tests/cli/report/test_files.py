"""A bill in files, for a job that runs by itself, and how much of it must have been seen."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.report.test_stores import CARD, OneHour, report
from tests.cluster.store.stub import vector


class SeenHalf(OneHour):
    """A second GPU is known from before and after, and not seen in the hour."""

    def about(self, query: str) -> Any:
        found = super().about(query)
        if query.startswith("last_over_time(podgpu_gpu_info"):
            before = {**CARD, "gpu": "1", "uuid": "GPU-2", "model": "NVIDIA H200"}
            found["data"]["result"] += vector((before, "1"))["data"]["result"]
        return found


@pytest.fixture
def prices(tmp_path: Path) -> str:
    file = tmp_path / "prices.yaml"
    file.write_text("currency: EUR\ngpu_hour: {'*': 3.5}\n")
    return f"--price={file}"


def files_in(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def rows_of(file: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(file.read_text().splitlines()))


async def test_every_format_is_written_with_the_period_in_its_name(
    tmp_path: Path, prices: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "bills"
    folder.mkdir()
    code, out, _ = await report(capsys, OneHour(), prices, f"--write-to={folder}")
    stem = "report-20261101T100000Z-20261101T110000Z"
    assert [file.name for file in files_in(folder)] == [f"{stem}.{end}" for end in ("csv", "focus.csv", "json")]
    assert code == 0 and (folder / f"{stem}.json").read_text() == out
    rows = rows_of(folder / f"{stem}.csv")
    focus = rows_of(folder / f"{stem}.focus.csv")
    costs = [
        sum(float(row[name]) for row in page if row[name]) for page, name in ((rows, "cost"), (focus, "BilledCost"))
    ]
    assert costs == [3.5, 3.5] == [json.loads(out)["total"]["cost"]] * 2


async def test_without_prices_there_is_no_focus_file_and_it_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = await report(capsys, OneHour(), f"--write-to={tmp_path}")
    assert [file.suffix for file in files_in(tmp_path)] == [".csv", ".json"]
    assert code == 0 and "focus.csv is not written: -o focus is about costs; give --price" in err


async def test_a_folder_that_cannot_be_written_to_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = await report(capsys, OneHour(), f"--write-to={tmp_path}/none")
    assert (code, out) == (2, "") and "give a folder that exists" in err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), 3),
        (("--allow-gaps",), 0),
        (("--min-coverage=0.5",), 0),
        (("--min-coverage=0.51",), 3),
        (("--min-coverage=1",), 3),
    ],
)
async def test_a_bill_with_gaps_ends_well_if_enough_was_seen(
    words: tuple[str, ...], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found, out, err = await report(capsys, SeenHalf(), *words)
    assert json.loads(out)["coverage"]["ratio"] == 0.5
    assert found == code and "the bill is incomplete" in err


@pytest.mark.parametrize("ratio", ["99%", "1.5", "-1", "nan", "most"])
async def test_a_ratio_is_from_0_to_1(ratio: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = await report(capsys, OneHour(), f"--min-coverage={ratio}")
    assert code == 2 and "give a number from 0 to 1" in err


async def test_a_period_of_the_calendar_stands_in_place_of_two_times(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = await report(capsys, OneHour(), "--period=last-month")
    assert code == 2 and "give it, or --from and --to" in err


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"request": {"start": 1, "end": 2, "by": "pod"}, "by": ["pod"]}'])
async def test_only_a_report_can_be_made_again(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "old.json"
    file.write_text(text)
    code, out, err = await report(capsys, OneHour(), f"--verify={file}")
    assert (code, out) == (2, "") and "give one of -o json" in err


async def test_a_report_is_made_again_and_what_differs_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "old.json"
    _, out, _ = await report(capsys, OneHour())
    file.write_text(out)
    code, out, err = await report(capsys, OneHour(), f"--verify={file}")
    assert (code, err) == (0, "") and out == f"{file}: the same as the store says now\n"
    file.write_text(file.read_text().replace('"namespace": "ml"', '"namespace": "other"'))
    code, out, err = await report(capsys, OneHour(), f"--verify={file}")
    assert code == 1 and out == f"{file}: not the same as the store says now\n"
    assert "! group/other: " in err and "! group/ml: " in err
