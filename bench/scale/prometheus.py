"""A real Prometheus that scrapes many simulated nodes, and writes what it scraped to another store.

The nodes' pages are those of the demo, taken cycle after cycle, so that values move as they do on a node.
"""

import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from bench.figure import Figure

NODE = "0000000000"
SECONDS = 60.0
SCRAPE = 5.0
FEW, MANY = 10, 60


class Farm:
    """Serves the pages of many nodes, and takes what is written to it."""

    def __init__(self, pages: Sequence[bytes]) -> None:
        self._pages = pages
        self._began = time.monotonic()
        self.requests = 0
        self.received = 0
        self.port = 0

    async def answer(self, request: web.BaseRequest) -> web.Response:
        if request.method == "POST":
            self.requests += 1
            self.received += len(await request.read())
            return web.Response(status=204)
        number = int(request.path.split("/")[1])
        cycle = int((time.monotonic() - self._began) / SCRAPE) % len(self._pages)
        page = self._pages[cycle].replace(NODE.encode(), b"%010d" % number)
        return web.Response(body=page, content_type="text/plain")


async def run(pages: Sequence[bytes]) -> list[Figure]:
    program = shutil.which("prometheus")
    if program is None:
        return [Figure("Prometheus", "not installed")]
    few, many = await _measured(program, pages, FEW), await _measured(program, pages, MANY)
    series = many["prometheus_tsdb_head_series"] - few["prometheus_tsdb_head_series"]
    memory = many["process_resident_memory_bytes"] - few["process_resident_memory_bytes"]
    sent = many["prometheus_remote_storage_bytes_total"]
    samples = many["prometheus_remote_storage_samples_total"]
    return [
        Figure(f"Prometheus, series of {MANY} nodes", f"{many['prometheus_tsdb_head_series']:.0f}"),
        Figure(f"Prometheus, memory with {FEW} and {MANY} nodes", f"{_mib(few)} MiB, {_mib(many)} MiB"),
        Figure("Prometheus, memory for each further series", f"{memory / series:.0f} B"),
        Figure("Prometheus, samples that were written on", f"{samples:.0f}"),
        Figure("remote write, for each sample, with snappy", f"{sent / samples:.2f} B"),
        Figure("remote write, as received", f"{many['received'] / many['requests']:.0f} B a request"),
        Figure("Prometheus, write-ahead log for each sample", f"{many['wal'] / samples:.1f} B"),
    ]


def _mib(found: dict[str, float]) -> str:
    return f"{found['process_resident_memory_bytes'] / 2**20:.0f}"


async def _measured(program: str, pages: Sequence[bytes], nodes: int) -> dict[str, float]:
    async with _served(Farm(pages)) as farm:
        with tempfile.TemporaryDirectory() as folder:
            url = f"http://127.0.0.1:{farm.port + 1}"
            process = await _started(program, Path(folder), farm.port, nodes)
            try:
                await asyncio.sleep(SECONDS)
                found = await _own_metrics(url)
                wal = sum(file.stat().st_size for file in (Path(folder) / "data/wal").rglob("*") if file.is_file())
            finally:
                process.terminate()
                await process.wait()
    return {**found, "wal": float(wal), "received": float(farm.received), "requests": float(farm.requests)}


@asynccontextmanager
async def _served(farm: Farm) -> AsyncIterator[Farm]:
    runner = web.ServerRunner(web.Server(farm.answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    farm.port = runner.addresses[0][1]
    try:
        yield farm
    finally:
        await runner.cleanup()


def _target(port: int, number: int) -> dict[str, Any]:
    labels = {"__metrics_path__": f"/{number}/metrics", "instance": str(number)}
    return {"targets": [f"127.0.0.1:{port}"], "labels": labels}


async def _started(program: str, folder: Path, port: int, nodes: int) -> asyncio.subprocess.Process:
    targets = [_target(port, number) for number in range(nodes)]
    interval = f"{SCRAPE:.0f}s"
    configuration = {
        "global": {"scrape_interval": interval, "scrape_timeout": interval},
        "scrape_configs": [{"job_name": "podgpu", "honor_labels": True, "static_configs": targets}],
        "remote_write": [{"url": f"http://127.0.0.1:{port}/write"}],
    }
    file = folder / "prometheus.yml"
    file.write_text(json.dumps(configuration))
    return await asyncio.create_subprocess_exec(
        program,
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port + 1}",
        "--log.level=error",
    )


async def _own_metrics(url: str) -> dict[str, float]:
    """Read what Prometheus says about itself; series of one name are added up."""
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as answer:
        text = await answer.text()
    found: dict[str, float] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            series, _, value = line.rpartition(" ")
            name = series.partition("{")[0]
            found[name] = found.get(name, 0.0) + float(value)
    return found
