"""The file of counters that dcgm-exporter reads."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.config.precedence import load
from podgpu.errors import UserError
from podgpu.option import options_of
from podgpu.views.dialects._dcgm.counters import TYPES, CountersFile, DcgmPageOptions, ListedCounter


def read(path: Path, text: str | bytes) -> tuple[ListedCounter, ...]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = options_of(DcgmPageOptions)["collectors"].parse(str(path))
    assert isinstance(found, CountersFile)
    return found.listed


def refusal(path: Path, text: str | bytes) -> str:
    with pytest.raises(UserError) as caught:
        read(path, text)
    return str(caught.value)


TEMPERATURE = ListedCounter("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C).")


@pytest.mark.parametrize(
    "text",
    [
        "DCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (in C).",
        "DCGM_FI_DEV_GPU_TEMP,gauge,GPU temperature (in C).\n",
        "  DCGM_FI_DEV_GPU_TEMP ,\tgauge , GPU temperature (in C). \r\n",
        'DCGM_FI_DEV_GPU_TEMP, gauge, "GPU temperature (in C)."',
        '# Format\n#,,\n\n   \r\n  # "indented\n,,\nDCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (in C).\n',
        "\ufeffDCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (in C).",
        "DCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (in C).\nDCGM_FI_DEV_GPU_TEMP, counter, again",
    ],
)
def test_a_line_is_a_field_a_type_and_help(tmp_path: Path, text: str) -> None:
    assert read(tmp_path / "counters.csv", text) == (TEMPERATURE,)


def test_quotes_hold_commas_together(tmp_path: Path) -> None:
    (counter,) = read(tmp_path / "counters.csv", 'DCGM_FI_DEV_FB_USED, gauge, "Memory, in ""MiB""."')
    assert counter.help == 'Memory, in "MiB".'


def test_labels_and_the_order_are_kept(tmp_path: Path) -> None:
    counters = read(tmp_path / "counters.csv", "B, counter, b\nDCGM_FI_DRIVER_VERSION, label, Driver\nA, gauge,\n")
    assert [(counter.field, counter.type) for counter in counters] == [
        ("B", "counter"),
        ("DCGM_FI_DRIVER_VERSION", "label"),
        ("A", "gauge"),
    ]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("DCGM_FI_DEV_GPU_TEMP", "1 of 3 columns; write FIELD, TYPE, HELP"),
        ("DCGM_FI_DEV_GPU_TEMP, gauge", "2 of 3 columns; write FIELD, TYPE, HELP"),
        ("A, gauge, used, in MiB", "4 columns; put a HELP that has commas in double quotes"),
        ("A, Gauge, help", "'Gauge' is not a type; write gauge, counter or label"),
        ("A, histogram, help", "'histogram' is not a type"),
        ("DCGM-FI, gauge, help", "'DCGM-FI' is not the name of a field"),
        ("1A, gauge, help", "'1A' is not the name of a field"),
        ('A, gauge, "open', "a double quote is not closed"),
        ('A, gauge, "closed" twice', "a double quote is not closed, or text follows it"),
    ],
)
def test_a_mistake_is_named_with_file_line_and_cure(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "counters.csv"
    said = refusal(path, f"# comment\n\n{line}\n")
    assert said.startswith(f"{path}: line 3: ")
    assert told in said


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "no line names a counter"),
        (b"# all of it\n\n", "no line names a counter"),
        (b"A, gauge, \xff\n", "not UTF-8 text"),
        (b"#" * (1 << 20) + b"#", "larger than 1 MiB"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, data: bytes, told: str) -> None:
    assert told in refusal(tmp_path / "counters.csv", data)


def test_it_is_read_when_the_agent_starts(tmp_path: Path) -> None:
    path = tmp_path / "counters.csv"
    path.write_text("DCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (in C).")
    options = load({}, {"PODGPU_DCGM_COLLECTORS": str(path)}).of(DcgmPageOptions)
    assert options.collectors == CountersFile(str(path), (TEMPERATURE,))
    assert load({}, {}).of(DcgmPageOptions).collectors is None


def test_a_file_that_is_not_there_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--dcgm.collectors: cannot read .*none.csv"):
        load({"dcgm_collectors": [str(tmp_path / "none.csv")]}, {})


@given(data=st.one_of(st.binary(), st.text().map(str.encode), st.text(alphabet='A,"# \r\ngauge').map(str.encode)))
def test_whatever_the_file_holds_it_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    try:
        counters = read(path, data)
    except UserError:
        return
    assert counters
    assert all(counter.type in TYPES and counter.field.isidentifier() for counter in counters)
