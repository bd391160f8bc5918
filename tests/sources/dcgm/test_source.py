"""Good and bad pages over real HTTP."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from podgpu.agent.loop import Agent
from podgpu.assembly.agent import open_agent
from podgpu.config.precedence import load
from podgpu.model import Fault, Report
from podgpu.sources.dcgm.page import PageClient
from podgpu.sources.dcgm.reading import MOST_CARDS
from podgpu.sources.dcgm.source import AT_ONCE, DcgmSource, FixedPages
from tests.patience import PATIENCE, LoopClock, settle, until
from tests.sources.dcgm.exporter import FakeExporter, recorded

T4 = recorded("k8s_484_lowercase_hostname_t4")
L4 = recorded("k8s_idle_l4_gpu_operator")
A800 = recorded("mig_a800_8gpu_mixed_full")
FOREVER = 20 * PATIENCE


class FoundPages(FixedPages, frozen=True):
    fault: Fault | None

    async def find(self) -> tuple[Mapping[str, str], Fault | None]:
        return self.urls, self.fault


@asynccontextmanager
async def pages(*urls: str, fault: Fault | None = None, max_bytes: int = 16 << 20) -> AsyncIterator[DcgmSource]:
    source = DcgmSource(
        FoundPages(dict.fromkeys(urls, "gpu-node"), fault), PageClient(timeout=PATIENCE, max_bytes=max_bytes)
    )
    try:
        yield source
    finally:
        await source.close()


async def report_of(*urls: str, max_bytes: int = 16 << 20) -> Report:
    async with pages(*urls, max_bytes=max_bytes) as source:
        return await source.read()


def models(report: Report) -> dict[int, str]:
    found = {device.gpu.index: device.gpu.model for device in report.devices}
    assert [*found] == sorted(found)
    assert len(found) == len(report.devices)
    return found


def invented(cards: int) -> bytes:
    rows = (f'DCGM_FI_DEV_POWER_USAGE{{gpu="{number}",UUID="GPU-{number:032x}"}} 7' for number in range(cards))
    return "\n".join(rows).encode()


def reason(report: Report) -> str:
    assert report.fault is not None
    assert report.devices == ()
    return report.fault.reason


async def test_a_page_is_a_report() -> None:
    async with FakeExporter(T4) as exporter:
        report = await report_of(exporter.url)
    assert report.fault is None
    assert [device.gpu.model for device in report.devices] == ["Tesla T4"]
    assert [allocation.pod for allocation in report.allocations] == ["gpu-test"]
    assert not report.devices[0].ability.sees_processes
    assert 0 < report.devices[0].seconds <= report.seconds


async def test_each_reading_is_made_at_its_own_time() -> None:
    async with FakeExporter(T4) as exporter, pages(exporter.url) as source:
        first, second = await source.read(), await source.read()
    assert first.devices[0].at < second.devices[0].at


async def test_two_exporters_that_watch_one_card_are_one_card() -> None:
    async with FakeExporter(T4) as first, FakeExporter(T4) as other:
        report = await report_of(first.url, other.url)
    assert (len(report.devices), len(report.allocations)) == (1, 1)


async def test_cards_of_several_exporters_stand_in_the_order_of_their_numbers() -> None:
    async with FakeExporter(A800) as first, FakeExporter(T4) as other:
        report = await report_of(first.url, other.url)
    assert [device.gpu.index for device in report.devices] == [*range(9)]
    assert report.driver_version == "535.129.03"


async def test_a_card_with_a_taken_number_gets_another_and_keeps_it() -> None:
    async with FakeExporter(T4) as first, FakeExporter(L4) as other, pages(first.url, other.url) as source:
        assert models(await source.read()) == {0: "Tesla T4", 1: "NVIDIA L4"}
        first.status = 500
        assert models(await source.read()) == {1: "NVIDIA L4"}
        first.status = 200
        assert models(await source.read()) == {0: "Tesla T4", 1: "NVIDIA L4"}


async def test_a_replacement_number_gives_way_to_the_card_that_really_has_it() -> None:
    async with FakeExporter(T4) as first, FakeExporter(L4) as other, pages(first.url, other.url) as source:
        await source.read()
        first.page = T4 + T4.replace(b'gpu="0",UUID="GPU-8', b'gpu="1",UUID="GPU-9')
        assert models(await source.read()) == {0: "Tesla T4", 1: "Tesla T4", 2: "NVIDIA L4"}


async def test_all_pages_share_a_limit_of_cards_and_no_page_starves_the_others() -> None:
    async with FakeExporter(invented(MOST_CARDS)) as crowd, FakeExporter(T4) as other:
        report = await report_of(crowd.url, other.url)
    assert len(report.devices) == MOST_CARDS
    assert "Tesla T4" in models(report).values()
    assert report.errors == {"too_many_cards": 1}


async def test_slow_pages_do_not_use_up_the_time_of_the_others() -> None:
    clock = LoopClock()
    async with FakeExporter(T4, delay=FOREVER) as slow, FakeExporter(T4) as good:
        urls = [f"{slow.url}?{number}" for number in range(AT_ONCE)]
        reading = asyncio.create_task(report_of(*urls, good.url))
        await until(lambda: len(slow.requests) == AT_ONCE)
        clock.set_ahead(PATIENCE)
        report = await reading
    assert len(report.devices) == 1
    assert report.errors == {"page_late": AT_ONCE}


async def test_pages_of_a_node_share_the_byte_limit() -> None:
    async with FakeExporter(T4) as small, FakeExporter(T4 + b"#" * (40 << 10)) as large:
        alone = await report_of(large.url, max_bytes=64 << 10)
        both = await report_of(large.url, small.url, max_bytes=64 << 10)
    assert (len(alone.devices), alone.errors) == (1, {})
    assert (len(both.devices), both.errors) == (1, {"page_too_large": 1})


async def test_a_page_that_fails_does_not_affect_the_others() -> None:
    clock = LoopClock()
    async with (
        FakeExporter(T4) as good,
        FakeExporter(status=500) as bad,
        FakeExporter(T4, delay=FOREVER) as slow,
    ):
        urls = (bad.url, slow.url, "http://127.0.0.1:9/metrics", good.url)
        reading = asyncio.create_task(report_of(*urls))
        await until(lambda: bad.requests and slow.requests and good.requests)
        await settle()
        clock.set_ahead(PATIENCE)
        report = await reading
    assert report.fault is None
    assert len(report.devices) == 1
    assert report.errors == {"page_refused": 1, "page_late": 1, "page_unreachable": 1}


@pytest.mark.parametrize(
    ("exporter", "expected"),
    [
        (FakeExporter(status=404), "page_refused"),
        (FakeExporter(T4, status=500), "page_refused"),
        (FakeExporter(T4, status=302, headers={"Location": "http://169.254.169.254/"}), "page_refused"),
        (FakeExporter(T4, delay=FOREVER), "page_late"),
        (FakeExporter(T4 * 100), "page_too_large"),
        (FakeExporter(T4, headers={"Content-Encoding": "gzip"}), "page_garbage"),
        (FakeExporter(b"<html>"), "no_gpu"),
        (FakeExporter(b""), "no_gpu"),
        (FakeExporter(recorded("grace_cpu_issue243")), "no_gpu"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_missing_page_has_a_reason(exporter: FakeExporter, expected: str) -> None:
    clock = LoopClock()
    async with exporter:
        reading = asyncio.create_task(report_of(exporter.url, max_bytes=64 << 10))
        await until(lambda: exporter.requests)
        await settle()
        clock.set_ahead(PATIENCE)
        assert reason(await reading) == expected
        assert len(exporter.requests) == 1


async def test_a_refused_connection_is_described_briefly() -> None:
    report = await report_of("http://user:secret@127.0.0.1:9/metrics")
    assert report.fault == Fault(reason="page_unreachable", detail="127.0.0.1:9: Connection refused")


async def test_an_answer_that_is_not_http_has_a_reason() -> None:
    async def nonsense(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.9\r\n")
        writer.close()

    server = await asyncio.start_server(nonsense, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert reason(await report_of(f"http://127.0.0.1:{port}/metrics")) == "page_garbage"


async def test_if_there_is_no_page_the_finder_says_why() -> None:
    async with pages(fault=Fault(reason="no_exporter")) as source:
        assert reason(await source.read()) == "no_exporter"


async def test_it_asks_for_plain_text_and_nothing_compressed() -> None:
    async with FakeExporter(T4) as exporter:
        await report_of(exporter.url)
    [request] = exporter.requests
    assert request.headers["Accept-Encoding"] == "identity"
    assert "Cookie" not in request.headers
    assert "Authorization" not in request.headers


async def test_not_too_many_pages_are_asked_for_at_once() -> None:
    async with AsyncExitStack() as stack:
        exporter = await stack.enter_async_context(FakeExporter(T4, delay=0.05))
        report = await report_of(*(f"{exporter.url}?{number}" for number in range(40)))
    assert len(exporter.requests) == 40
    assert exporter.most_open <= AT_ONCE
    assert report.errors == {}


async def test_there_is_no_driver_to_let_go_of() -> None:
    async with pages() as source:
        assert await source.release(60)


@pytest.mark.parametrize(("environment", "node"), [({}, "gpu-node-7"), ({"NODE_NAME": "worker-1"}, "worker-1")])
async def test_without_a_node_name_the_host_on_the_page_counts(environment: dict[str, str], node: str) -> None:
    page = b'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1",Hostname="gpu-node-7"} 40\n'
    async with FakeExporter(page) as exporter:
        agent = open_agent(load({"source": ["dcgm"], "dcgm_url": [exporter.url]}, environment))
        assert isinstance(agent, Agent)
        try:
            await agent.cycle()
            assert agent.snapshot.node == node
            exporter.status = 500
            await agent.cycle()
            assert agent.snapshot.node == node  # a page that fails renames nothing
        finally:
            await agent.close()
