"""The command as a process: it reads agents, serves them, and stops when it is told to."""

import asyncio
import signal
import sys
import urllib.request

from podgpu.views.cluster.json import decode
from tests.cluster.fleet import Fleet
from tests.cluster.nodes import document, node_name
from tests.patience import PATIENCE, PODGPU
from tests.ports import quiet_port


def page(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        body: bytes = answer.read()
        return body


async def ready(url: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await asyncio.to_thread(page, f"{url}/-/ready")
            except OSError:
                await asyncio.sleep(0.05)
            else:
                return


async def test_it_serves_the_agents_until_it_is_stopped() -> None:
    url = f"http://127.0.0.1:{(port := quiet_port())}"
    async with Fleet(2, document) as fleet:
        process = await asyncio.create_subprocess_exec(
            *(*PODGPU, "cluster", f"--web.listen-address=127.0.0.1:{port}"),
            f"--cluster.agents={','.join(fleet.urls)}",
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await ready(url)
            found = decode(await asyncio.to_thread(page, f"{url}/api/v1/cluster"))
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(PATIENCE):
                code = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
    assert [(node.name, node.state) for node in found.nodes] == [
        (node_name(0), "fresh"),
        (node_name(1), "fresh"),
    ]
    assert code == 0


async def test_a_wrong_address_is_a_mistake_that_says_what_to_write() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "podgpu", "cluster", "--cluster.agents=gpu-1:19400"),
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    assert process.returncode == 2
    assert b"write it like http://127.0.0.1:19400" in said
