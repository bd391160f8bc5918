"""The parser by example, and compared with prometheus_client on pages that nobody would write."""

import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from podgpu.sources.dcgm import parse as parser
from podgpu.sources.dcgm.parse import ParsedPage, parse
from tests.sources.dcgm.exporter import RECORDED

WANTED = frozenset({"DCGM_FI_DEV_GPU_UTIL", "dcgm_gpu_temp", "a"})
Sample = tuple[str, frozenset[tuple[str, str]], float]


def samples(page: ParsedPage) -> Counter[Sample]:
    return Counter((name, frozenset(row.labels.items()), value) for row in page.rows for name, value in row.samples)


def only_sample(line: str) -> tuple[dict[str, str], float]:
    [row] = parse(line.encode(), WANTED).rows
    [(_, value)] = row.samples
    return row.labels, value


@pytest.mark.parametrize(
    ("line", "labels", "value"),
    [
        ('a{gpu="0",UUID="GPU-1"} 5', {"gpu": "0", "UUID": "GPU-1"}, 5),
        ("a 5", {}, 5),
        ("a{} 5", {}, 5),
        ("a\t5", {}, 5),
        (' a { gpu = "0" , } 5', {"gpu": "0"}, 5),
        ('a{gpu="0"}5', {"gpu": "0"}, 5),
        ('a{gpu="0"} 7.824041e+06', {"gpu": "0"}, 7824041),
        ('a{gpu="0"} 5 1395066363000', {"gpu": "0"}, 5),
        ('a{gpu="0"} 5 # {trace="}"} 0.6 1.5', {"gpu": "0"}, 5),
        ('a 5 # {trace="x"} 0.6', {}, 5),
        (r'a{job="say \"hi\"\n\\ \t"} 5', {"job": 'say "hi"\n\\ \\t'}, 5),
        ('a{job="{}, # = }"} 5', {"job": "{}, # = }"}, 5),
        ('{"a","gpu 0"="x"} 5', {"gpu 0": "x"}, 5),
        ('a{modelName="Größe \u2028"} 5\r', {"modelName": "Größe \u2028"}, 5),
        ('a{gpu="0"} -3', {"gpu": "0"}, -3),
    ],
)
def test_a_sample_is_read(line: str, labels: dict[str, str], value: float) -> None:
    assert only_sample(line) == (labels, value)


@pytest.mark.parametrize(
    "line",
    [
        *("a", "a{", "a{}", "a{ 5", "a{gpu} 5", 'a{gpu="0} 5', 'a{gpu="0"', 'a{"gpu"} 5'),
        *('a{gpu="0"UUID="1"} 5', 'a{gpu=0,UUID="1"} 5', "a{gpu=0} 5", 'a{1="2"} 5'),
        *('a{modelName="NVIDIA "fast" card"} 5', 'a{gpu="0"} ERROR - FAILED', "a{} 1_000", "a{} 0x10"),
        "a " + "9" * 5000,
        'a{job="' + "x" * parser.LONGEST_LINE + '"} 5',
        "a{" + ",".join(f'l{number}=""' for number in range(parser.MOST_LABELS + 1)) + "} 5",
    ],
)
def test_a_malformed_line_is_counted_and_skipped(line: str) -> None:
    page = parse(f'{line}\na{{gpu="1"}} 6'.encode(), WANTED)
    assert samples(page) == {("a", frozenset({("gpu", "1")}), 6.0): 1}
    assert page.skipped == {"malformed": 1}


def test_a_repeated_label_keeps_its_first_and_last_value() -> None:
    [row] = parse(b'a{gpu="0",pod="x",gpu="1",pod="y",pod="z"} 5', WANTED).rows
    assert (row.labels, row.last) == ({"gpu": "0", "pod": "x"}, {"gpu": "1", "pod": "z"})


def test_lines_of_other_names_are_not_even_looked_at() -> None:
    page = parse(b"# HELP a {\n# a 5\n#a 5\n\n  \nb{ ] 5\nab 5\n", WANTED)
    assert (page.rows, page.skipped) == ([], {})


@pytest.mark.parametrize(
    "blank",
    [
        *("9223372036854775792", "9223372036854775794", "9223372036854775807", "18446744073709551615"),
        *("2147483632", "2147483634", "2147483647", "140737488355328.000000", "140737488355331"),
        *("NaN", "+Inf", "-Inf", "1e400"),
    ],
)
def test_a_value_that_says_nothing_is_dropped(blank: str) -> None:
    page = parse(f"a{{}} {blank}".encode(), WANTED)
    assert (samples(page), page.skipped) == ({}, {"blank": 1})


@pytest.mark.parametrize("value", [2147483631, 2147483648, 15152422938, 140737488355327, 2**50, 2**62])
def test_a_counter_may_lie_between_those(value: int) -> None:
    assert only_sample(f"a {value}") == ({}, value)


def test_a_page_has_only_so_many_sets_of_labels() -> None:
    lines = [f'a{{gpu="{number}"}} 1' for number in range(parser.MOST_ROWS + 3)]
    page = parse("\n".join(lines).encode(), WANTED)
    assert (len(page.rows), page.skipped) == (parser.MOST_ROWS, {"too_many": 3})


def test_a_page_has_only_so_many_samples() -> None:
    page = parse(b"a 1\n" * (parser.MOST_SAMPLES + 3), WANTED)
    assert (sum(samples(page).values()), page.skipped) == (parser.MOST_SAMPLES, {"too_many": 3})


def test_lines_are_whole_wherever_a_piece_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b'a{gpu="0"} 1\n\na{gpu="1"} 2\na 3'
    whole = samples(parse(text, WANTED))
    for piece in range(len(text) + 2):
        monkeypatch.setattr(parser, "PIECE", piece)
        assert samples(parse(text, WANTED)) == whole


# Pieces that pages are made of, right and wrong: hypothesis puts them together.
NAMES = st.sampled_from([*WANTED, "b", "ab", "", "a b", "#a", "Ä"])
SPACE = st.sampled_from(["", " ", "  ", "\t", " \t", "\x0b", "\r"])
VALUES = st.one_of(
    st.text(max_size=6),
    st.text(alphabet='\\"n{},=# ', max_size=6),
    st.sampled_from(["GPU-1", r"\"", r"\\", r"\n", "}"]),
)
LABELS = st.lists(
    st.builds(
        lambda name, left, right, value, quote: f"{name}{left}={right}{quote}{value}{quote}{left}",
        st.sampled_from(["gpu", "UUID", "x:y", '"quoted name"', '"a"', "1", "", "__name__"]),
        SPACE,
        SPACE,
        VALUES,
        st.sampled_from(['"', '"', '"', '"', ""]),
    )
    | st.sampled_from(['"a"', "", " ", ","]),
    max_size=4,
).map(",".join)
NUMBERS = st.one_of(
    st.floats().map(str),
    st.integers().map(str),
    st.sampled_from(["9223372036854775794", "2147483632", "1_0", "NaN", "0x1", "", "x", "1e5", "\u0663"]),
)
AFTER = st.sampled_from(["", " 1700000000", ' # {trace="x"} 1', " x 3", "\r", " "])
LINES = st.builds(
    lambda *parts: "".join(parts),
    *(SPACE, NAMES, SPACE),
    st.one_of(LABELS.map(lambda text: f"{{{text}}}"), st.just(""), st.sampled_from(["{", "}"])),
    *(SPACE, NUMBERS, AFTER),
)
PAGES = st.lists(LINES | st.sampled_from(["", "# HELP a b", "# a 5"]), max_size=6).map("\n".join)


def expected(text: str) -> Counter[Sample]:
    """Return what prometheus_client finds. Without types it leaves the names as they are."""
    lines = [line for line in text.split("\n") if not line.strip().startswith("#")]
    try:
        families = list(text_string_to_metric_families("\n".join(lines)))
    except (ValueError, IndexError):  # it refuses a page as a whole, at times by accident
        assume(False)
    found = (sample for family in families for sample in family.samples if sample.name in WANTED)
    rows = ((sample.name, frozenset(sample.labels.items()), as_float(sample.value)) for sample in found)
    return Counter(row for row in rows if says_something(row[2]))


def as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def says_something(value: float) -> bool:
    blank = any(start <= value < start + 16 for start in (2**31 - 16, 2**47))
    return math.isfinite(value) and value < 2**63 and not blank


@given(PAGES)
@example('a{gpu=,x:y="1"} 1')
@example('a{gpu="0", ,} 1')
@example('a{,} 1\na{gpu="0"} 2\na{gpu="0"} 3')
@example('a{gpu="\\\\"} 1')
@example('{"a"} 1\na{} 2')
def test_every_page_that_prometheus_client_accepts_is_read_as_it_reads_it(text: str) -> None:
    text = text.encode(errors="replace").decode()
    assert samples(parse(text.encode(), WANTED)) == expected(text)


@given(st.binary() | PAGES.map(lambda text: text.encode(errors="replace")))
def test_no_page_makes_it_raise(page: bytes) -> None:
    parse(page, WANTED)


@pytest.mark.parametrize("path", sorted(RECORDED.iterdir()), ids=lambda path: path.stem)
def test_recorded_pages_are_read_as_prometheus_client_reads_them(path: Path) -> None:
    lines = [line for line in path.read_text().split("\n") if not line.startswith("#")]
    # One exporter wrote a message in place of a number, which prometheus_client refuses the page for.
    text = "\n".join(line for line in lines if "ERROR" not in line)
    names = {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}
    theirs = Counter(
        (sample.name, frozenset(sample.labels.items()), float(sample.value))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if says_something(float(sample.value))
    )
    assert samples(parse(path.read_bytes(), names)) == theirs
