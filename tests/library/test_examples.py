"""Every program in docs/library.md runs unchanged and prints its documented output."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.fakeapi.recorded import owners
from tests.fakeapi.server import FakeApi
from tests.library.examples import Example, examples
from tests.library.pods import pods
from tests.patience import PATIENCE
from tests.ports import quiet_port
from tests.sources.dcgm.exporter import FakeExporter, recorded

PAGE = recorded("k8s_484_lowercase_hostname_t4")
EXAMPLES = examples()
PRINTING = [example for example in EXAMPLES if example.output is not None]
[SERVING] = [example for example in EXAMPLES if example.output is None]


@asynccontextmanager
async def started(code: str, folder: Path) -> AsyncIterator[Process]:
    (folder / "page.prom").write_bytes(PAGE)
    (folder / "example.py").write_text(code)
    # As on a machine without a cluster, whatever this one is.
    ours = {name: value for name, value in os.environ.items() if not name.startswith("KUBERNETES_")}
    ours |= {"PODGPU_PATH_KUBELET": str(folder / "kubelet"), "PODGPU_PATH_LOGS": str(folder / "log")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-Werror", "example.py", cwd=folder, env=ours, stdout=PIPE, stderr=PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("example", PRINTING, ids=range(len(PRINTING)))
async def test_an_example_prints_what_it_says(example: Example, tmp_path: Path) -> None:
    async with FakeExporter(PAGE) as exporter, FakeApi(objects=owners() | pods()) as api:
        code = example.code.replace("http://127.0.0.1:9400", exporter.url.removesuffix("/metrics"))
        code = code.replace("http://127.0.0.1:8001", api.url)
        async with started(code, tmp_path) as process, asyncio.timeout(PATIENCE):
            output, errors = await process.communicate()
    assert (output.decode(), errors.decode()) == (example.output, "")


async def test_the_example_of_an_application_serves_and_stops(tmp_path: Path) -> None:
    port = quiet_port()
    code = SERVING.code.replace("port=8080", f'host="127.0.0.1", port={port}')
    async with started(code, tmp_path) as process, asyncio.timeout(PATIENCE):
        metrics = await answer(f"http://127.0.0.1:{port}/gpu/metrics", process)
        rows = await answer(f"http://127.0.0.1:{port}/gpu/container/metrics", process)
        process.send_signal(signal.SIGTERM)
        _, errors = await process.communicate()
    assert "podgpu_gpu_info" in metrics
    assert rows.startswith("[\n")
    assert (process.returncode, errors.decode()) == (0, "")


async def answer(url: str, process: Process) -> str:
    """Ask until somebody listens there."""
    async with aiohttp.ClientSession() as session:
        while process.returncode is None:
            try:
                async with session.get(url) as response:
                    assert response.status == 200
                    return await response.text()
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.1)
    _, errors = await process.communicate()
    pytest.fail(errors.decode())
