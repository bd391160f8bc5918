import gzip

import pytest
from msgspec import json

from podgpu.model import Snapshot
from podgpu.serve.pages import NodePages, PageRegistry
from podgpu.views import native
from podgpu.views.dialects import Answers
from podgpu.views.exposition import Format
from tests.serve.rig import CountingDialect, make_snapshot

TEXT, OPENMETRICS = Format.TEXT, Format.OPENMETRICS


def test_a_page_is_rendered_once_for_a_snapshot() -> None:
    dialect, snapshot = CountingDialect(), make_snapshot()
    pages = NodePages(100, PageRegistry({"counted": dialect}))
    first = pages.metrics(snapshot, "counted", TEXT, gzipped=False)
    assert pages.metrics(snapshot, "counted", TEXT, gzipped=False) is first
    packed = pages.metrics(snapshot, "counted", TEXT, gzipped=True)
    assert pages.metrics(snapshot, "counted", TEXT, gzipped=True) is packed
    assert gzip.decompress(packed.body) == first.body
    assert pages.metrics(snapshot, "counted", OPENMETRICS, gzipped=False).body != first.body
    assert dialect.calls == 1


def test_a_new_snapshot_is_rendered_anew_even_when_it_is_equal() -> None:
    dialect = CountingDialect()
    pages = NodePages(100, PageRegistry({"counted": dialect}))
    for _ in range(3):
        pages.metrics(make_snapshot(), "counted", TEXT, gzipped=False)
    assert dialect.calls == 3


def test_dropped_series_are_summed_over_snapshots_and_told_on_the_next() -> None:
    dialect = CountingDialect(series=7)
    pages = NodePages(5, PageRegistry({"counted": dialect}))
    for number in range(3):
        snapshot = make_snapshot(f"n{number}")
        for form in (TEXT, OPENMETRICS):
            assert b"counted" not in pages.metrics(snapshot, "counted", form, gzipped=False).body
    assert dialect.dropped == [{}, {"counted": 7}, {"counted": 14}]


def test_the_native_page_tells_what_other_pages_dropped() -> None:
    pages = NodePages(100, PageRegistry({"/metrics/native": native.families, "big": CountingDialect(series=101)}))
    for number in (1, 2):
        snapshot = make_snapshot()
        assert pages.metrics(snapshot, "big", TEXT, gzipped=False).body == b""
        told = pages.metrics(snapshot, "/metrics/native", TEXT, gzipped=False).body.decode()
        assert f'podgpu_series_dropped_total{{node="worker-1",family="counted"}} {number * 101}.0\n' in told


def test_the_first_cut_of_each_page_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    big = CountingDialect(series=7)
    pages = NodePages(5, PageRegistry({"/big": big, "/large": big, "/small": CountingDialect()}))
    for _ in range(3):
        snapshot = make_snapshot()
        for path in pages.registry.pages:
            pages.metrics(snapshot, path, TEXT, gzipped=False)
    fields = [vars(record)["fields"] for record in caplog.records if "--series.limit" in record.message]
    assert fields == [{"page": path, "limit": 5, "families": 1, "series": 7} for path in ("/big", "/large")]


def test_the_native_page_says_how_much_it_dropped() -> None:
    whole = NodePages(1000).metrics(make_snapshot(), "/metrics/native", TEXT, gzipped=False).body
    series = sum(not line.startswith(b"#") for line in whole.splitlines())
    pages = NodePages(series - 1)
    first = pages.metrics(make_snapshot(), "/metrics/native", TEXT, gzipped=False).body
    second = pages.metrics(make_snapshot(), "/metrics/native", TEXT, gzipped=False).body
    assert b"podgpu_build_info" in first
    assert b"podgpu_series_dropped_total{" not in first
    assert b"podgpu_series_dropped_total{" in second


def test_the_status_page_is_rendered_once_a_second() -> None:
    pages, snapshot = NodePages(100), make_snapshot()
    now = pages.html(snapshot, 1, gzipped=False)
    assert pages.html(snapshot, 1, gzipped=False) is now
    assert pages.html(snapshot, 2, gzipped=False).body != now.body
    assert pages.html(snapshot, 1, gzipped=False) is not now  # only the latest is kept


def test_json_is_rendered_once_for_a_snapshot() -> None:
    pages, snapshot = NodePages(100), make_snapshot()
    assert pages.json(snapshot, gzipped=True) is pages.json(snapshot, gzipped=True)


def test_documents_are_written_once_for_a_snapshot_whatever_is_asked() -> None:
    written: list[str] = []

    def view(snapshot: Snapshot) -> Answers:
        written.append(snapshot.node)
        return lambda query: json.encode([snapshot.node, *query.values()])

    pages, snapshot = NodePages(100, PageRegistry({}, {"/usage": view})), make_snapshot()
    for query in ({}, {"pod": "a"}, {"pod": "b"}):
        plain = pages.document(snapshot, "/usage", query, gzipped=False)
        packed = pages.document(snapshot, "/usage", query, gzipped=True)
        assert gzip.decompress(packed.body) == plain.body == json.encode(["worker-1", *query.values()])
    pages.document(make_snapshot("worker-2"), "/usage", {}, gzipped=False)
    assert written == ["worker-1", "worker-2"]


def test_a_large_document_is_packed_once_and_its_parts_are_sent_as_they_are() -> None:
    whole = b"x" * 100_000

    def view(_snapshot: Snapshot) -> Answers:
        return lambda query: bytes(whole[: len(whole) - len(query)] or b"") if query else whole

    pages, snapshot = NodePages(100, PageRegistry({}, {"/usage": view})), make_snapshot()
    packed = pages.document(snapshot, "/usage", {}, gzipped=True)
    assert packed.gzipped
    assert pages.document(snapshot, "/usage", {}, gzipped=True) is packed
    queries = [{str(key): "" for key in range(count)} for count in range(1, 40)]
    parts = [pages.document(snapshot, "/usage", query, gzipped=True) for query in queries]
    assert sum(not part.gzipped for part in parts) >= 30
