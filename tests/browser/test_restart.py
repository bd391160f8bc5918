"""The page over the real demo, which is stopped and started again."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.browser.chromium import Browser
from tests.patience import PATIENCE
from tests.ports import quiet_port

pytestmark = pytest.mark.asyncio(loop_scope="package")


@asynccontextmanager
async def demo(port: int) -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "podgpu", "demo", f"--web.listen-address=127.0.0.1:{port}", "--interval=1s",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            while not (found := re.search(rb"page\s+(http://\S+)", await process.stdout.readline())):
                pass
        yield found.group(1).decode()
    finally:
        process.terminate()
        await process.wait()


async def test_the_page_goes_on_when_the_agent_comes_back(chromium: Browser) -> None:
    port = quiet_port()
    async with chromium.page() as page:
        async with demo(port) as url:
            await page.open(url)
            await page.expect_text(".banner", "DEMO")
            await page.until("document.querySelector('#state').textContent.startsWith('live')")
        await page.until("document.querySelector('#state').textContent.includes('connecting again')")
        assert len(await page.texts(".gpu")) == 8, "the last numbers stay"
        async with demo(port):
            await page.until("document.querySelector('#state').textContent.startsWith('live')")
        assert page.complaints == []
