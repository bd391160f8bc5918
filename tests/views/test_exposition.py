import math
from collections.abc import Callable, Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from podgpu.catalog.row import Kind, Worth
from podgpu.views.exposition import Format, render
from podgpu.views.series import Family, Labels
from podgpu.views.text import clean

PARSERS: dict[Format, Callable[[str], Iterable[Metric]]] = {
    Format.TEXT: text_string_to_metric_families,
    Format.OPENMETRICS: openmetrics.text_string_to_metric_families,
}

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def family(name: str, kind: Kind, samples: Sequence[tuple[dict[str, str], float]], help_text: str = "Help.") -> Family:
    made = Family(name, kind, help_text, Worth.USEFUL)
    for pairs, value in samples:
        made.put(value, Labels.of(pairs))
    return made


def test_the_text_format() -> None:
    page = [
        family(
            "podgpu_busy_seconds_total",
            Kind.COUNTER,
            [({"gpu": "0"}, 1.5), ({"gpu": "1"}, 2.0)],
            'A \\ "b"\nc',
        ),
        family("podgpu_build_info", Kind.INFO, [({"version": "1"}, 1.0)]),
    ]
    assert render(page, Format.TEXT).decode() == (
        '# HELP podgpu_busy_seconds_total A \\\\ "b"\\nc\n'
        "# TYPE podgpu_busy_seconds_total counter\n"
        'podgpu_busy_seconds_total{gpu="0"} 1.5\n'
        'podgpu_busy_seconds_total{gpu="1"} 2.0\n'
        "# HELP podgpu_build_info Help.\n"
        "# TYPE podgpu_build_info gauge\n"
        'podgpu_build_info{version="1"} 1.0\n'
    )


def test_the_openmetrics_format() -> None:
    page = [
        family("podgpu_busy_seconds_total", Kind.COUNTER, [({}, 1.5)], 'A \\ "b"\nc'),
        family("podgpu_build_info", Kind.INFO, [({"version": "1"}, 1.0)]),
        family("podgpu_up", Kind.GAUGE, [({}, 1.0)]),
    ]
    assert render(page, Format.OPENMETRICS).decode() == (
        "# TYPE podgpu_busy_seconds counter\n"
        "# UNIT podgpu_busy_seconds seconds\n"
        '# HELP podgpu_busy_seconds A \\\\ \\"b\\"\\nc\n'
        "podgpu_busy_seconds_total 1.5\n"
        "# TYPE podgpu_build info\n"
        "# HELP podgpu_build Help.\n"
        'podgpu_build_info{version="1"} 1.0\n'
        "# TYPE podgpu_up gauge\n"
        "# HELP podgpu_up Help.\n"
        "podgpu_up 1.0\n"
        "# EOF\n"
    )


def test_a_foreign_counter_keeps_its_name_in_openmetrics() -> None:
    page = [family("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", Kind.COUNTER, [({}, 7.0)])]
    (parsed,) = PARSERS[Format.OPENMETRICS](render(page, Format.OPENMETRICS).decode())
    assert parsed.type == "unknown"
    assert [sample.name for sample in parsed.samples] == ["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"]


@pytest.mark.parametrize("form", Format)
def test_what_is_no_number_is_left_out_and_an_empty_family_with_it(form: Format) -> None:
    page = [
        family("a", Kind.GAUGE, [({"x": "1"}, math.nan), ({"x": "2"}, 2.0), ({"x": "3"}, math.inf)]),
        family("b", Kind.GAUGE, [({}, -math.inf)]),
        family("c", Kind.GAUGE, []),
    ]
    text = render(page, form).decode()
    assert [row for row in text.splitlines() if not row.startswith("#")] == ['a{x="2"} 2.0']
    assert " b" not in text
    assert " c" not in text


def test_an_int_or_a_bool_is_a_number_too() -> None:
    text = render([family("a", Kind.GAUGE, [({"x": "1"}, 3), ({"x": "2"}, True)])], Format.TEXT).decode()
    assert text.endswith('a{x="1"} 3.0\na{x="2"} 1.0\n')


LABEL_NAMES = ("node", "pod")
LABELS = st.tuples(st.text(st.characters(), max_size=8), st.text('\\"\n{}=,# \x85\u2028é💥', max_size=8))
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
HELPS = st.text(st.characters(codec="utf-8"), max_size=20).map(lambda text: clean(text).strip())


@st.composite
def pages(draw: st.DrawFn) -> tuple[list[Family], Series]:
    """Families as a view makes them, and the series they mean."""
    families, meant = [], {}
    for name, kind, numbers in (
        ("podgpu_a_bytes", Kind.GAUGE, NUMBERS),
        ("podgpu_b_seconds_total", Kind.COUNTER, st.floats(0, 1e300)),
        ("podgpu_c_info", Kind.INFO, st.just(1.0)),
    ):
        values = draw(st.dictionaries(LABELS, numbers, max_size=4))
        families.append(family(name, kind, [], draw(HELPS)))
        for labels, value in values.items():
            families[-1].put(value, Labels(LABEL_NAMES, labels))
            meant[name, tuple(zip(LABEL_NAMES, map(clean, labels), strict=True))] = value
    return families, meant


@given(pages())
def test_prometheus_reads_back_what_was_rendered(page: tuple[list[Family], Series]) -> None:
    families, meant = page
    for form, parse in PARSERS.items():
        found = list(parse(render(families, form).decode()))
        samples = [sample for family in found for sample in family.samples]
        series = {(sample.name, tuple(sample.labels.items())): sample.value for sample in samples}
        assert series == meant
        assert len(samples) == len(series)
        assert {family.documentation for family in found} == {family.help for family in families if family.samples}
