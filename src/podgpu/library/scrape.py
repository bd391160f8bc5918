"""Fetches and reads the pages of many dcgm-exporters at once."""

import asyncio
from collections.abc import Iterable

from msgspec.structs import replace

from podgpu.library.page import LARGEST_BYTES, LONGEST_SECONDS, read_page
from podgpu.model import Fault, PartStatus, Snapshot
from podgpu.sources.dcgm.page import PageClient, PageFault
from podgpu.sources.dcgm.source import AT_ONCE


async def scrape(
    urls: Iterable[str], *, timeout_seconds: float = LONGEST_SECONDS, max_bytes: int = LARGEST_BYTES
) -> dict[str, Snapshot]:
    """Read the pages at these addresses, each within the time and size limit, and return a snapshot for each.

    It never raises: the snapshot of a page that cannot be read has no cards, and its part is down, with the reason.
    """
    pages = PageClient(timeout=timeout_seconds, max_bytes=max_bytes)
    turns = asyncio.Semaphore(AT_ONCE)
    wanted = list(dict.fromkeys(urls))
    try:
        found = await asyncio.gather(*(_read(pages, url, turns) for url in wanted))
    finally:
        await pages.close()
    return dict(zip(wanted, found, strict=True))


async def _read(pages: PageClient, url: str, turns: asyncio.Semaphore) -> Snapshot:
    async with turns:
        try:
            body = await pages.get(url)
        except PageFault as fault:
            return _failed(fault)
        return await asyncio.to_thread(read_page, body)


def _failed(fault: PageFault) -> Snapshot:
    nothing = read_page(b"")
    part: PartStatus = nothing.parts[0]
    return replace(nothing, parts=(replace(part, fault=Fault(reason=fault.reason, detail=fault.detail)),))
