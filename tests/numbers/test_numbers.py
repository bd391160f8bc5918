"""Numbers as people read them, by one table in two languages."""

import ast
import json
import math
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu import numbers
from podgpu.numbers import QUANTITIES, column
from podgpu.views.page import words_script

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "src" / "podgpu"
EXAMPLES = json.loads((HERE / "examples.json").read_text())
NODE = shutil.which("node")

Given = tuple[str, Any]


def in_python(example: Given) -> str:
    quantity, value = example
    if quantity == "use":
        return numbers.use(*value)
    if quantity == "bounds":
        return numbers.bounds(*value)
    if quantity.startswith("count of "):
        return numbers.count(value, quantity.removeprefix("count of "))
    if quantity.startswith("money in "):
        return numbers.money(value, quantity.removeprefix("money in "))
    return numbers.write(quantity, float(value) if isinstance(value, str) else value)


class Page:
    """The page's own module, with the table as the server hands it out, in a node that stays."""

    def __init__(self, node: subprocess.Popen[str]) -> None:
        self._node = node

    def written(self, given: Sequence[Given]) -> list[str]:
        assert self._node.stdin is not None and self._node.stdout is not None
        self._node.stdin.write(f"{json.dumps(given)}\n")
        self._node.stdin.flush()
        return list(json.loads(self._node.stdout.readline()))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    if NODE is None:
        pytest.skip("needs node, which Debian's npm brings; .ci/run installs it")
    folder = tmp_path_factory.mktemp("page")
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "words.js").write_bytes(words_script())
    for source in (SOURCES / "web" / "numbers.js", HERE / "written.js"):
        (folder / source.name).write_bytes(source.read_bytes())
    command = [NODE, str(folder / "written.js")]
    here = {**os.environ, "TZ": "UTC"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=here) as node:
        yield Page(node)


@pytest.mark.parametrize(("quantity", "value", "expected"), EXAMPLES)
def test_each_example_is_written_so_in_python(quantity: str, value: Any, expected: str) -> None:
    assert in_python((quantity, value)) == expected


def test_each_example_is_written_so_on_the_page(page: Page) -> None:
    found = page.written([(quantity, value) for quantity, value, _ in EXAMPLES])
    assert dict(zip(map(repr, EXAMPLES), found, strict=True)) == {repr(example): example[2] for example in EXAMPLES}


def test_a_unit_that_two_numbers_share_is_written_once(page: Page) -> None:
    examples = {
        ("power", 691, 700): "691 of 700 W",
        ("power", 0, 1400): "0 of 1.40 kW",
        ("power", 950, 1400): "950 W of 1.40 kW",
        ("power", None, 700): "- of 700 W",
        ("memory", 2**28, 80 * 2**30): "0.25 of 80.0 GiB",
        ("gpus", 0.25, 1): "0.25 of 1 GPU",
        ("gpus", 1, 8): "1 of 8 GPUs",
    }
    found = page.written([(f"part of {quantity}", (part, total)) for quantity, part, total in examples])
    assert found == [numbers.part_of(*example) for example in examples] == list(examples.values())


def test_a_column_has_the_decimals_of_its_total_in_python_and_on_the_page(page: Page) -> None:
    values = (None, 0, 0.004, 1.25, 12.3456, 123.456, 98765.4321, -2.5)
    examples = [
        (quantity, value, total)
        for quantity in ("gpu hours", "money", "kilowatt hours")
        for value in values
        for total in values
    ]
    found = page.written([(f"column of {quantity}", pair) for quantity, *pair in examples])
    assert found == [column(*example) for example in examples]


def test_what_was_not_seen_in_full_is_never_written_as_all_of_it(page: Page) -> None:
    examples = {None: "-", 0: "0%", 0.5: "50%", 0.994: "99%", 0.99999: "<100%", 1: "100%"}
    assert [numbers.coverage(ratio) for ratio in examples] == list(examples.values())
    assert page.written([("coverage", ratio) for ratio in examples]) == list(examples.values())


def test_times_are_written_in_one_form_on_the_page(page: Page) -> None:
    """Node's clock is set to UTC: the page has that of its reader."""
    now = datetime.now(UTC)
    month = 1 if now.month > 6 else 12  # not today's
    this, last = (datetime(year, month, 2, 14, 3, 9, tzinfo=UTC).timestamp() for year in (now.year, now.year - 1))
    day = f"2 {numbers.MONTHS[month - 1]}"
    assert page.written([("moment", this), ("second", this)]) == [f"{day} 14:03", f"{day} 14:03:09"]
    assert page.written([("moment", last), ("moment", None)]) == [f"{day} {now.year - 1} 14:03", "-"]
    assert page.written([("dated", last)]) == [f"{day} {now.year - 1} 14:03 UTC"]
    assert page.written([("minute", "2026-11-01T00:30:00+01:00")]) == ["1 Nov 2026 00:30"]
    assert re.fullmatch(r"\d\d:\d\d", page.written([("moment", now.timestamp())])[0])


def test_every_quantity_has_examples() -> None:
    assert {quantity for quantity, _, _ in EXAMPLES} >= set(QUANTITIES)


def _values() -> st.SearchStrategy[float]:
    """Numbers of every size, those on the edges of steps, and halves that binary cannot hold."""
    edges = sorted({step.below * step.factor for how in QUANTITIES.values() for step in how.steps if step.below})
    return st.one_of(
        st.floats(allow_nan=False, allow_infinity=False),
        st.floats(min_value=-1e6, max_value=1e16),
        st.integers(min_value=-(10**16), max_value=10**16).map(float),
        st.integers(min_value=0, max_value=10**9).map(lambda number: (number * 10 + 5) / 10**4),
        st.sampled_from(edges).flatmap(
            lambda edge: st.sampled_from([0.5, 0.9949, 0.995, 0.9995, 0.99995]).map(lambda part: edge * part)
        ),
        st.sampled_from(edges).map(lambda edge: math.nextafter(edge, 0)),
    )


@given(value=_values())
def test_both_languages_agree_on_any_number(page: Page, value: float) -> None:
    found = page.written([(quantity, value) for quantity in QUANTITIES])
    assert found == [numbers.write(quantity, value) for quantity in QUANTITIES]
    found = page.written([(f"bare {quantity}", value) for quantity in QUANTITIES])
    assert found == [numbers.bare(quantity, value) for quantity in QUANTITIES]


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_both_languages_agree_on_bounds(page: Page, ratio: float, least: float, most: float) -> None:
    assert page.written([("use", (ratio, least, most))]) == [numbers.use(ratio, least, most)]


def test_a_column_is_written_with_the_digits_of_its_total() -> None:
    assert numbers.column("gpu hours", 0.5, 0.75) == "0.5000"
    assert numbers.column("gpu hours", 0.5, 1234.0) == "0.50"
    assert numbers.column("gpu hours", 1234.0, 1234.0) == "1,234.00"
    assert numbers.column("kilowatt hours", None, 3.0) == "-"


def test_memory_for_a_column_has_no_unit() -> None:
    assert numbers.gib(80 * 2**30) == "80.0"
    assert numbers.gib_of(2**28, 80 * 2**30) == "0.25 / 80.0"
    assert numbers.gib_of(None, 80 * 2**30) == "- / 80.0"
    assert numbers.gib_of(None, None) == "-"


def test_the_books_are_written_with_all_of_their_digits() -> None:
    assert numbers.exact(1_234_567_890_123_456_789, 6) == "1234567890123.456789"


def test_a_moment_is_in_utc_with_its_date() -> None:
    assert numbers.moment(1_794_751_391) == "2026-11-15 14:03:11 UTC"
    assert numbers.moment(None) == "-"
    assert numbers.moment(1e300) == "-"


# What is read by machines has its own forms, and what is drawn has none.
MACHINES = (
    "cli/_focus.py",
    "views/dialects",
    "views/exposition.py",
    "views/sample_format.py",
    "views/otlp.py",
    "views/json.py",
)
SCRIPT = re.compile(r"toFixed\(|toPrecision\(|toExponential\(|toLocale\w*\(|Intl\.|\* 100\)|\} ?%|=== 1 \? \"")


def _formats(path: Path) -> Iterator[str]:
    """Formats of numbers in strings, and plurals made by hand."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.FormattedValue(format_spec=ast.JoinedStr() as spec):
                if re.search(r"[fFgGeE%,]'?$", ast.unparse(spec)):
                    yield ast.unparse(node)
            case ast.BinOp(left=ast.Constant(value="s"), op=ast.Mult()) | ast.IfExp(orelse=ast.Constant(value="s")):
                yield ast.unparse(node)


def strays(sources: Path) -> Iterator[str]:
    for room in ("views", "doctor", "cli"):
        for path in sorted((sources / room).rglob("*.py")):
            shown = str(path.relative_to(sources))
            if not shown.startswith(MACHINES):
                yield from (f"{shown}: {found}" for found in _formats(path))
    for path in sorted((sources / "web").glob("*.js")):
        if path.name != "numbers.js":
            yield from (f"{path.name}: {found}" for found in SCRIPT.findall(path.read_text()))


def test_numbers_are_written_nowhere_else() -> None:
    assert list(strays(SOURCES)) == []


def test_a_number_that_is_written_elsewhere_is_found(tmp_path: Path) -> None:
    for folder in ("views/dialects", "web"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "views" / "one.py").write_text('a = f"{b * 100:.0f}%"\nc = f"{d:>7}"\ne = "pod" + "s" * (f != 1)\n')
    (tmp_path / "views" / "dialects" / "two.py").write_text('a = f"{b:g}"\n')
    (tmp_path / "web" / "three.js").write_text("const a = (b) => `${b.toFixed(1)} kW`;\n")
    assert len(list(strays(tmp_path))) == 3
