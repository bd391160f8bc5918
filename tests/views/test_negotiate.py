import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.views.exposition import Format, gzip_accepted, page_format

PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"

# As sent by the programs themselves.
PROMETHEUS_2_42 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
PROMETHEUS_2_30 = "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"


@pytest.mark.parametrize(
    "accept",
    [
        PROMETHEUS_2_42,
        PROMETHEUS_3,
        f"{PROTOBUF};q=0.7,{PROMETHEUS_3}",
        "application/openmetrics-text",
        "APPLICATION/OpenMetrics-Text; Version=1.0.0",
        'application/openmetrics-text;version="1.0.0"',
        "text/plain;q=0,*/*",
        "text/plain;q=0.5,application/*;q=0.6",
    ],
)
def test_openmetrics_is_chosen(accept: str) -> None:
    assert page_format(accept) is Format.OPENMETRICS


@pytest.mark.parametrize(
    "accept",
    [
        None,
        "",
        "*/*",
        BROWSER,
        PROMETHEUS_2_30,
        "application/json",
        "text/plain,application/openmetrics-text;q=0.9",
        "application/openmetrics-text;q=0",
        "application/openmetrics-text;q=0,*/*;q=1",
        "application/openmetrics-text;version=2.0.0",
        "application/openmetrics-text;q=2",
        "application/openmetrics-text;q=nan",
        "application/openmetrics-text;q=",
        ";;;,,,===",
        "application",
    ],
)
def test_text_is_the_answer_to_everything_else(accept: str | None) -> None:
    assert page_format(accept) is Format.TEXT


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("gzip", True),
        ("gzip, deflate, br, zstd", True),
        ("deflate;q=1.0, GZIP;q=0.5", True),
        ("*", True),
        ("identity;q=0, *;q=0.1", True),
        (None, False),
        ("", False),
        ("gzip;q=0", False),
        ("gzip;q=0, *", False),
        ("identity, gzip;q=0.5", False),
        ("gzip;q=much", False),
        ("br", False),
    ],
)
def test_gzip(header: str | None, accepted: bool) -> None:
    assert gzip_accepted(header) is accepted


def test_only_the_first_entries_of_an_endless_header_count() -> None:
    assert page_format("a/b," * 100_000 + "application/openmetrics-text") is Format.TEXT


FRAGMENTS = st.lists(
    st.sampled_from(
        ["application/openmetrics-text", "text/plain", "*/*", ";", ",", "q=", "0.5", "version=", '"', "gzip"]
    )
    | st.text(max_size=3)
).map("".join)


@given(FRAGMENTS)
def test_no_header_raises(header: str) -> None:
    page_format(header)
    gzip_accepted(header)
