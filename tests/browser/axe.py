"""What axe-core finds wrong with a page for people who cannot see it well."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import Page

_AXE = Path(__file__).parents[2] / "build" / "axe" / "package" / "axe.min.js"
_FOUND = """axe.run().then(result => result.violations
    .filter(one => IMPACTS.includes(one.impact))
    .map(one => [one.id, one.nodes.slice(0, 3).map(node => node.html.slice(0, 99) + node.failureSummary)]))
"""


_SERIOUS = ("serious", "critical")
_ALL = ("minor", "moderate", *_SERIOUS)


async def serious(page: Page) -> Any:
    return await _found(page, _SERIOUS)


async def findings(page: Page) -> Any:
    """Everything that it objects to, minor things too."""
    return await _found(page, _ALL)


async def _found(page: Page, impacts: Sequence[str]) -> Any:
    if not _AXE.exists():
        pytest.skip("needs axe-core; make axe fetches it")
    await page.run(await asyncio.to_thread(_AXE.read_text))
    return await page.run(_FOUND.replace("IMPACTS", str(list(impacts))))
