"""The file that says into how many virtual GPUs each card is divided."""

from pathlib import Path

import pytest

from podgpu.config.precedence import load
from podgpu.errors import UserError


def read(path: Path) -> tuple[float, ...] | None:
    return load({"sharing_ratio_file": [str(path)]}, {}).sharing_ratio_file


@pytest.mark.parametrize(
    ("text", "ratios"),
    [
        ("2", (2.0,)),
        ("2\n", (2.0,)),
        ("\ufeff2\r\n", (2.0,)),  # as Windows writes it
        ("2.5\n", (2.5,)),
        ("1", (1.0,)),
        ("4 4 2 1", (4.0, 4.0, 2.0, 1.0)),
        ("4, 4,2\n\n\t1\r\n", (4.0, 4.0, 2.0, 1.0)),
        ("9999", (9999.0,)),
    ],
)
def test_numbers_stand_apart_by_blanks_commas_or_lines(tmp_path: Path, text: str, ratios: tuple[float, ...]) -> None:
    path = tmp_path / "gpu_allocation.txt"
    path.write_text(text)
    assert read(path) == ratios


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("0", "line 1: '0'"),
        ("0.5", "line 1: '0.5'"),
        ("2\n-4", "line 2: '-4'"),
        ("2 2\n\nnan", "line 3: 'nan'"),
        ("inf", "line 1: 'inf'"),
        ("1e3", "line 1: '1e3'"),
        ("10000", "line 1: '10000'"),
        ("ratio=2", "line 1: 'ratio=2'"),
        ("٢", "line 1: '٢'"),
        ("9" * 5000, "line 1: '9999"),
        ("", "holds no number"),
        (" ,\n", "holds no number"),
        ("2\n" * 40_000, "larger than 64 KiB"),
    ],
)
def test_anything_else_is_refused_with_its_line_and_what_the_file_must_hold(
    tmp_path: Path, text: str, place: str
) -> None:
    path = tmp_path / "gpu_allocation.txt"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        read(path)
    assert str(caught.value).startswith("--sharing.ratio-file: ")
    assert place in str(caught.value)
    assert "must hold one number for the node, or one for each GPU" in str(caught.value)
    assert len(str(caught.value)) < 500


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "gpu_allocation.txt"
    path.write_bytes(b"\xff\xfe2")
    with pytest.raises(UserError, match="line 1"):
        read(path)


@pytest.mark.parametrize(("name", "reason"), [("gone", "No such file"), (".", "directory")])
def test_what_cannot_be_read_is_said(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(UserError, match=f"cannot read .*{reason}.*must hold one number"):
        read(tmp_path / name)


def test_without_the_option_there_is_no_ratio() -> None:
    assert load({}, {}).sharing_ratio_file is None


def test_a_byte_order_mark_is_no_part_of_the_number(tmp_path: Path) -> None:
    path = tmp_path / "gpu_allocation.txt"
    path.write_bytes("2 4\r\n".encode("utf-8-sig"))
    assert read(path) == (2.0, 4.0)
