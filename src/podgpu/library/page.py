"""Fetches and reads pages of dcgm-exporter."""

import asyncio
import time
from collections.abc import Iterable

from msgspec.structs import replace

from podgpu import __version__, sharing
from podgpu.agent.join import Join
from podgpu.model import ErrorCount, Fault, PartStatus, Snapshot
from podgpu.model.kube import grouped
from podgpu.sharing.inventory import Inventory
from podgpu.sources.dcgm.page import PageClient, PageFault
from podgpu.sources.dcgm.reading import read
from podgpu.sources.dcgm.source import AT_ONCE, NO_GPU, DcgmSource

LONGEST_SECONDS = 10.0
LARGEST_BYTES = 16 << 20


async def fetch_page(url: str, *, timeout_seconds: float = LONGEST_SECONDS, max_bytes: int = LARGEST_BYTES) -> bytes:
    """Fetch a whole page. Raises PageFault: its `reason` and `detail` say why there is none."""
    pages = PageClient(timeout=timeout_seconds, max_bytes=max_bytes)
    try:
        return await pages.get(url)
    finally:
        await pages.close()


def read_page(page: bytes | str, *, node: str = "") -> Snapshot:
    """Read the cards on a page of any version of dcgm-exporter, and the containers that it says hold them.

    Without a node, the host that the page names counts. No page makes this raise: `errors` counts what was skipped. A
    single page has no past and no processes, so there are readings, and tenants with their claims, but nothing is
    booked.
    """
    found = read(page.encode(errors="replace") if isinstance(page, str) else page)
    devices = tuple(card.device for card in found.cards)
    name = DcgmSource.name
    allocations = [allocation for card in found.cards for allocation in card.allocations]
    claims = sharing.claims(Inventory(devices, allocations, source=name))
    on_card, join = grouped(claims, lambda claim: claim.gpu), Join((), {}, {})
    fault = None if devices else Fault(reason="no_gpu", detail=NO_GPU)
    return Snapshot(
        node=node or found.node,
        taken_at=time.time(),
        interval_seconds=0.0,
        version=__version__,
        driver_version=found.driver_version,
        nvml_version=found.nvml_version,
        cards=tuple(join.card(device, None, on_card.get(device.gpu.uuid, ())) for device in devices),
        parts=(PartStatus(name=name, up=fault is None, fault=fault),),
        errors=tuple(ErrorCount(source=name, reason=reason, count=count) for reason, count in found.errors.items()),
    )


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
            nothing = read_page(b"")
            part: PartStatus = nothing.parts[0]
            return replace(nothing, parts=(replace(part, fault=Fault(reason=fault.reason, detail=fault.detail)),))
        return await asyncio.to_thread(read_page, body)
