"""Ten minutes at 1 s: the agent is killed and comes back, the network is cut, and nothing moves under the hand.

make test-steady, or PODGPU_STEADY_SECONDS=60 for less.
"""

import asyncio
import os
import time

import pytest

from tests.browser.chromium import Browser, Page
from tests.browser.proxy import Proxy, proxied
from tests.browser.steadiness import MOST_SHIFT, heap_mib, shift, watch
from tests.browser.test_restart import demo
from tests.ports import quiet_port

pytestmark = pytest.mark.asyncio(loop_scope="package")

SECONDS = float(os.environ.get("PODGPU_STEADY_SECONDS", "600"))
LOOKS = 10
MOST_GROWTH_MIB = 3.0
STATE = "document.querySelector('#state').textContent"
# What has the focus, less what may change.
HELD = "(e => [e.tagName, e.dataset.key, e.getAttribute('href')].join())(document.activeElement)"


async def looked(page: Page, seconds: float, heaps: list[float]) -> None:
    """Watch for a while, and note what the page holds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        await asyncio.sleep(min(seconds / LOOKS, 15.0))
        heaps.append(await heap_mib(page))


async def lives(page: Page) -> None:
    await page.until(f"{STATE}.includes('live')")


async def cut(page: Page, proxy: Proxy) -> None:
    """First a cable that is pulled and put back, then a router that forgets all connections."""
    for end in (proxy.mend, proxy.drop):
        proxy.cut()
        await page.until(f"{STATE}.startsWith('stale') || {STATE}.startsWith('connecting')")
        await page.until("getComputedStyle(document.querySelector('.list')).opacity < 1")
        end()
        proxy.mend()
        await lives(page)


@pytest.mark.parametrize("query", ["", "?pod=search%2Fscore-nightly-28841-kd5vt"], ids=["overview", "pod"])
async def test_a_page_stays_steady(chromium: Browser, query: str) -> None:
    heaps: list[float] = []
    async with proxied() as proxy, chromium.page(1280, 900) as page:
        await watch(page)
        proxy.target = quiet_port()
        async with demo(proxy.target):
            await page.open(f"http://127.0.0.1:{proxy.port}/{query}")
            await lives(page)
            await page.run("document.querySelector('.gpu .seg[href], .podpage .scroll').focus()")
            held = await page.run(HELD)
            await looked(page, SECONDS / 3, heaps)
            await cut(page, proxy)
            await looked(page, SECONDS / 3, heaps)
        await page.until(f"{STATE}.includes('connecting again')")
        async with demo(proxy.target):
            await lives(page)
            await looked(page, SECONDS / 3, heaps)
        worst, total, moved = await shift(page)
        size = f"heap {heaps[0]:.1f} MiB at first, {heaps[-1]:.1f} at last, {max(heaps):.1f} at most"
        print(f"\nshift {worst:.4f} at worst, {total:.4f} in all; {size}")
        assert await page.run(HELD) == held and await page.run("blurs") == 0
        assert worst <= MOST_SHIFT, moved
        # The last hour is kept, so it fills up at first.
        assert heaps[-1] - heaps[len(heaps) // 3] < MOST_GROWTH_MIB
        assert page.complaints == []
