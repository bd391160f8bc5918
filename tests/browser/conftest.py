from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.browser.chromium import PROGRAM, Browser, browser


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def chromium() -> AsyncIterator[Browser]:
    if PROGRAM is None:
        pytest.skip("needs Debian's chromium; .ci/run installs it")
    async with browser() as started:
        yield started
