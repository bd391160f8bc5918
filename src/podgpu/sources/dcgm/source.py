"""dcgm-exporter's pages as a source of numbers. Processes are not on them, and whoever wrote them may lie."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable

from podgpu.model import Fault, Report
from podgpu.sources.dcgm.page import PageFault, Pages
from podgpu.sources.dcgm.reading import Card, Found, read

# Where the pages are, and why there are none if there are none.
Find = Callable[[], Awaitable[tuple[tuple[str, ...], Fault | None]]]
NO_GPU = "there is no GPU on the page; does dcgm-exporter see any?"


class DcgmPages:
    name = "dcgm"
    demo = False

    def __init__(
        self,
        find: Find,
        *,
        timeout: float,
        max_bytes: int,
        closing: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`closing` ends what `find` keeps open."""
        self._find = find
        self._pages = Pages(timeout=timeout, max_bytes=max_bytes)
        self._closing = closing

    async def read(self) -> Report:
        began = time.monotonic()
        urls, fault = await self._find()
        answers = await asyncio.gather(*map(self._answer, urls))
        found = [answer for answer in answers if isinstance(answer, Found)]
        faults = [answer for answer in answers if isinstance(answer, Fault)]
        if not found:
            seconds = time.monotonic() - began
            return Report(fault=next(iter(faults), fault), sees_processes=False, seconds=seconds)
        return _report(found, faults, time.monotonic() - began)

    async def release(self, seconds: float) -> bool:
        """Agree at once: no driver is held here."""
        return True

    async def close(self) -> None:
        await self._pages.close()
        if self._closing:
            await self._closing()

    async def _answer(self, url: str) -> Found | Fault:
        """One page that fails shall not take the others with it."""
        began = time.monotonic()
        try:
            body = await self._pages.get(url)
        except PageFault as fault:
            return Fault(reason=fault.reason, detail=fault.detail)
        at = time.monotonic()
        found = await asyncio.to_thread(read, body, at=at, seconds=at - began)
        return found if found.cards else Fault(reason="no_gpu", detail=NO_GPU)


def _report(found: list[Found], faults: list[Fault], seconds: float) -> Report:
    errors = Counter(fault.reason for fault in faults)
    for one in found:
        errors.update(one.errors)
    cards = _each_once(card for one in found for card in one.cards)
    return Report(
        devices=tuple(card.device for card in cards),
        allocations=tuple(allocation for card in cards for allocation in card.allocations),
        sees_processes=False,
        errors=dict(errors),
        driver_version=next((one.driver_version for one in found if one.driver_version), ""),
        nvml_version=next((one.nvml_version for one in found if one.nvml_version), ""),
        seconds=seconds,
    )


def _each_once(cards: Iterable[Card]) -> list[Card]:
    """Two exporters may watch one card, as while one replaces the other: the first that names it is heard."""
    first: dict[str, Card] = {}
    for card in cards:
        first.setdefault(card.device.gpu.uuid, card)
    return sorted(first.values(), key=lambda card: card.device.gpu.index)
