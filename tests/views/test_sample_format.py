"""How other systems write numbers."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.views import sample_format as numbers

FINITE = st.floats(allow_nan=False, allow_infinity=False)

# What Go's strconv.FormatFloat(value, 'g', -1, 64) returns.
GO = {
    0.0: "0",
    33.0: "33",
    0.25: "0.25",
    0.0001: "0.0001",
    0.00001: "1e-05",
    0.000012: "1.2e-05",
    999999.0: "999999",
    1e6: "1e+06",
    1234567.0: "1.234567e+06",
    1150168.5: "1.1501685e+06",
    150754820096.0: "1.50754820096e+11",
    1e100: "1e+100",
    -5.5: "-5.5",
}


@pytest.mark.parametrize(("value", "text"), GO.items())
def test_as_prometheus_go_library_writes(value: float, text: str) -> None:
    assert numbers.go([value]) == [text]


def test_every_way_writes_the_same_few_numbers() -> None:
    values = [33.0, 652.557, 176270336.0]
    assert numbers.own(values) == ["33.0", "652.557", "176270336.0"]
    assert numbers.whole_numbers([33.0, 176270336.0]) == ["33", "176270336"]
    assert numbers.decimals(6)(values) == ["33.000000", "652.557000", "176270336.000000"]
    assert numbers.decimals(3)(values) == ["33.000", "652.557", "176270336.000"]
    assert numbers.shortest(values) == ["33", "652.557", "176270336"]
    assert numbers.go(values) == ["33", "652.557", "1.76270336e+08"]
    assert numbers.cpp([*values, 0.1]) == ["33", "652.557", "176270336", "0.1"]


@pytest.mark.parametrize(
    "writing",
    [numbers.own, numbers.whole_numbers, numbers.decimals(6), numbers.shortest, numbers.go, numbers.cpp],
)
def test_what_is_not_a_finite_number_is_nothing(writing: numbers.Writing) -> None:
    assert writing([nan, inf, -inf]) == [numbers.NOTHING] * 3


@given(FINITE)
def test_short_forms_lose_nothing(value: float) -> None:
    assert float(numbers.go([value])[0]) == value
    assert float(numbers.shortest([value])[0]) == value


@given(FINITE)
def test_in_json_a_whole_number_has_no_fraction(value: float) -> None:
    written = numbers.in_json(value)
    assert written == value
    assert isinstance(written, int) == (value == int(value))
