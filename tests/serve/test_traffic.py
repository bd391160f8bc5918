"""The page of k8s-vgpu-monitor tells how it was served, as its HTTP library did."""

import gzip

import pytest
from prometheus_client.parser import text_string_to_metric_families

from podgpu.assembly.server import open_pages
from podgpu.config.precedence import load
from podgpu.option.value import Address
from podgpu.serve import traffic
from podgpu.serve.server import NodeServer
from tests.serve.rig import Answer, StubNode, connected, serving
from tests.views.quirks import SNAPSHOT

OLD = Address("127.0.0.1", 0, "vgpu-monitor")
BYTES, SCRAPES, LATENCIES = "exposer_transferred_bytes_total", "exposer_scrapes_total", "exposer_request_latencies"
PATH = "/metrics/vgpu-monitor"


def node() -> StubNode:
    stub = StubNode()
    stub.current = SNAPSHOT
    return stub


def values(body: bytes) -> dict[str, float]:
    """Each series of the library by its name and quantile, as a real parser reads them."""
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
        if sample.name.startswith("exposer_")
    }


async def scraped(server: NodeServer, path: str = "/metrics", port: int = 0, **headers: str) -> Answer:
    async with connected(server, server.ports[port]) as client:
        return await client.get(path, **headers)


async def test_a_scrape_sees_what_the_scrapes_before_it_were_sent_and_how_long_they_took() -> None:
    async with serving(node(), OLD, registry=open_pages(load({}, {}))) as server:
        first = await scraped(server)
        second = await scraped(server)
        third = await scraped(server, accept_encoding="gzip")
        fourth = await scraped(server)
    assert values(first.body) == {BYTES: 0, SCRAPES: 0, f"{LATENCIES}_sum": 0, f"{LATENCIES}_count": 0}
    assert (values(second.body)[BYTES], values(second.body)[SCRAPES]) == (len(first.body), 1)
    sent = len(first.body) + len(second.body)
    assert values(gzip.decompress(third.body))[BYTES] == sent
    last = values(fourth.body)
    assert (last[BYTES], last[SCRAPES], last[f"{LATENCIES}_count"]) == (sent + len(third.body), 3, 3)
    took = [last[f"{LATENCIES} {quantile}"] for quantile in ("0.5", "0.9", "0.99")]
    assert 0 < took[0] <= took[1] <= took[2] <= last[f"{LATENCIES}_sum"]
    head = [line for line in fourth.text.splitlines() if line.startswith(f"# TYPE {LATENCIES}")]
    assert head == [f"# TYPE {LATENCIES} summary"]
    assert "# HELP exposer_transferred_bytes_total Transferred bytes to metrics services\n" in fourth.text


async def test_only_requests_of_that_page_count_at_any_of_its_addresses() -> None:
    other = Address("127.0.0.1", 0)
    async with serving(node(), OLD, other, registry=open_pages(load({}, {}))) as server:
        native = await scraped(server, port=1)
        await scraped(server, PATH, port=1)
        await scraped(server, f"{PATH}?name[]={SCRAPES}", port=1)
        async with connected(server, server.ports[0]) as client:
            client.ask("/metrics", "HEAD")
            await client.answer(head_only=True)
        only = await scraped(server, f"{PATH}?name[]={SCRAPES}")
    assert b"exposer_" not in native.body
    assert values(only.body) == {SCRAPES: 2}


async def test_a_client_that_has_an_older_page_gets_the_newer_one() -> None:
    async with serving(node(), OLD, registry=open_pages(load({}, {}))) as server:
        first = await scraped(server)
        second = await scraped(server, if_none_match=first.headers["etag"])
    assert (second.status, values(second.body)[SCRAPES]) == (200, 1)


async def test_names_that_are_denied_are_left_out() -> None:
    async with serving(node(), OLD, registry=open_pages(load({"series_deny": ["exposer_*"]}, {}))) as server:
        page = await scraped(server)
    assert b"exposer_" not in page.body and b"pod_gpu_sm_util" in page.body


class StillClock:
    """Goes when it is told to."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


def test_quantiles_are_of_the_last_minute_and_sums_of_all_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = StillClock()
    monkeypatch.setattr(traffic, "time", clock)
    counted = traffic.TrafficCounter()
    counted.add(100, 3.0)
    clock.now = 59.0
    counted.add(50, 1.0)
    assert list(counted.state.recent_seconds) == [3.0, 1.0]
    clock.now = 61.0
    assert list(counted.state.recent_seconds) == [1.0]
    for _ in range(2 * traffic.MOST_RECENT):
        counted.add(1, 0.5)
    state = counted.state
    assert (state.requests, state.seconds) == (2 + 2 * traffic.MOST_RECENT, 4.0 + traffic.MOST_RECENT)
    assert state.body_bytes == 150 + 2 * traffic.MOST_RECENT
    assert len(state.recent_seconds) == traffic.MOST_RECENT
