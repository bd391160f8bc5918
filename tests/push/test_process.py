"""The agent as a process that pushes: the collector gets what the page shows, and cannot hold the page up."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from tests.patience import PATIENCE, PODGPU, until
from tests.push.fake_collector import FakeCollector


@asynccontextmanager
async def agent(endpoint: str) -> AsyncIterator[str]:
    """Yield the address of a demo's page."""
    process = await asyncio.create_subprocess_exec(
        *(*PODGPU, "demo", "--interval=200ms", "--node-name=worker-1"),
        "--web.listen-address=127.0.0.1:0",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_METRIC_EXPORT_INTERVAL": "300"},
    )
    try:
        assert process.stdout
        async with asyncio.timeout(PATIENCE):
            await process.stdout.readline()
            page = re.search(r"http://\S+", (await process.stdout.readline()).decode())
        assert page
        yield page[0]
    finally:
        process.terminate()
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0


async def scraped(page: str) -> str:
    limit = aiohttp.ClientTimeout(total=PATIENCE)
    async with aiohttp.ClientSession(timeout=limit) as session, session.get(f"{page}metrics") as answer:
        assert answer.status == 200
        return await answer.text()


async def shown(page: str, pattern: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while not re.search(pattern, await scraped(page), re.MULTILINE):  # noqa: ASYNC110 - a page to look at
            await asyncio.sleep(0.05)


async def test_the_collector_gets_what_the_page_shows() -> None:
    async with FakeCollector() as collector, agent(collector.url) as page:

        def pushed() -> dict[str, float]:
            return {
                dict(facts)["hw.id"]: value
                for (name, facts), value in collector.points.items()
                if name == "hw.gpu.memory.limit"
            }

        # What is pushed before the first reading has no GPUs.
        await until(lambda: collector.requests and pushed())
        text, limits = await scraped(page), pushed()
        family = r'^podgpu_gpu_memory_total_bytes\{.*uuid="([^"]+)".*\} (\S+)$'
        assert limits == {uuid: float(value) for uuid, value in re.findall(family, text, re.MULTILINE)}
        assert len(limits) == 8
        await shown(page, r'^podgpu_source_up\{node="worker-1",source="otlp"\} 1')


async def test_a_collector_that_refuses_or_hangs_does_not_hold_up_the_page() -> None:
    async with FakeCollector() as gone:
        endpoint = gone.url
    async with agent(endpoint) as page:
        await shown(page, r'^podgpu_source_problem\{node="worker-1",source="otlp",reason="unreachable"\} 1')
        await shown(page, "^podgpu_gpu_up{.*} 1")
        assert re.search(r"^podgpu_up\{.*\} 1", await scraped(page), re.MULTILINE)
    async with FakeCollector(delay=30.0) as silent, agent(silent.url) as page:
        await until(lambda: silent.paths)
        await shown(page, "^podgpu_gpu_up{.*} 1")
