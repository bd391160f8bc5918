"""The dcgm source: reads the pages of dcgm-exporters. Pages list no processes and may be wrong."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import count, zip_longest
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from podgpu.model import Fault, Report
from podgpu.sources.dcgm import NAME
from podgpu.sources.dcgm.page import PageFault
from podgpu.sources.dcgm.reading import MOST_CARDS, PageCard, PageContents, read
from podgpu.sources.protocols import PageFinder

AT_ONCE = 15  # pages
NO_GPU = "there is no GPU on the page; does dcgm-exporter see any?"


class PageFetcher(Protocol):
    async def get(self, url: str, *, together: int = 1) -> bytes:
        """Fetch one of `together` pages of the node. Raises PageFault."""

    async def close(self) -> None: ...


class FixedPages(Struct, frozen=True):
    """Pages at known addresses, each with its node. Without a node, the host that the page names counts."""

    urls: Mapping[str, str]

    async def find(self) -> tuple[Mapping[str, str], Fault | None]:
        return self.urls, None

    async def close(self) -> None:
        """Nothing is open."""


class DcgmSource:
    """All pages are of one node."""

    name = NAME
    demo = False

    def __init__(self, finder: PageFinder, pages: PageFetcher) -> None:
        self._finder = finder
        self._pages = pages
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._renumbered: Mapping[str, int] = {}

    async def read(self) -> Report:
        began = time.monotonic()
        pages, fault = await self._finder.find()
        answers = await asyncio.gather(*(self._answer(url, len(pages)) for url in pages))
        faults = [answer for answer in answers if isinstance(answer, Fault)]
        found = [answer for answer in answers if isinstance(answer, PageContents)]
        if not found:
            seconds = time.monotonic() - began
            return Report(fault=next(iter(faults), fault), seconds=seconds)
        report = self._report(found, faults, time.monotonic() - began)
        is_named = all(pages.values())
        return report if is_named else replace(report, node=found[0].node)

    async def release(self, seconds: float) -> bool:
        """Return True at once: this source does not use the driver."""
        return True

    async def close(self) -> None:
        await self._pages.close()
        await self._finder.close()

    async def _answer(self, url: str, together: int) -> PageContents | Fault:
        """Read one page. Its failure must not affect the others, and its time starts with its turn."""
        async with self._turns:
            began = time.monotonic()
            try:
                body = await self._pages.get(url, together=together)
            except PageFault as fault:
                return Fault(reason=fault.reason, detail=fault.detail)
            at = time.monotonic()
            found = await asyncio.to_thread(read, body, at=at, seconds=at - began)
        return found if found.cards else Fault(reason="no_gpu", detail=NO_GPU)

    def _report(self, found: Sequence[PageContents], faults: list[Fault], seconds: float) -> Report:
        errors = Counter(fault.reason for fault in faults)
        for page in found:
            errors.update(page.errors)
        once = _each_once(found)
        errors["too_many_cards"] += max(0, len(once) - MOST_CARDS)
        cards, self._renumbered = _numbered(once[:MOST_CARDS], self._renumbered)
        return Report(
            devices=tuple(card.device for card in cards),
            allocations=tuple(allocation for card in cards for allocation in card.allocations),
            errors=dict(+errors),
            driver_version=next((page.driver_version for page in found if page.driver_version), ""),
            nvml_version=next((page.nvml_version for page in found if page.nvml_version), ""),
            seconds=seconds,
        )


def _each_once(found: Iterable[PageContents]) -> list[PageCard]:
    """List each card once. While an exporter is replaced, two may show the same card: the first counts.

    Pages take turns, so that a page with very many cards does not push out the cards of the others.
    """
    first: dict[str, PageCard] = {}
    for turn in zip_longest(*(page.cards for page in found)):
        for card in filter(None, turn):
            first.setdefault(card.device.gpu.uuid, card)
    return list(first.values())


def _numbered(cards: list[PageCard], before: Mapping[str, int]) -> tuple[list[PageCard], dict[str, int]]:
    """Give each card an index of its own, since two exporters of a node may both count from 0.

    Return the cards, and the new index of each card that had to change. `before` has the changes of the last cycle: a
    card keeps its new index, even while the other exporter does not answer.
    """
    printed = {card.device.gpu.index for card in cards}
    used: set[int] = set()
    renumbered: dict[str, int] = {}
    for card in cards:
        gpu = card.device.gpu
        if gpu.uuid in before or gpu.index in used:
            kept = before.get(gpu.uuid, gpu.index)
            taken = {*used, *printed, *before.values()}
            free = next(number for number in count(max(printed) + 1) if number not in taken)
            renumbered[gpu.uuid] = free if kept in printed | used else kept
        used.add(renumbered.get(gpu.uuid, gpu.index))
    numbered = [_with_index(card, renumbered.get(card.device.gpu.uuid, card.device.gpu.index)) for card in cards]
    return sorted(numbered, key=lambda card: card.device.gpu.index), renumbered


def _with_index(card: PageCard, index: int) -> PageCard:
    gpu = card.device.gpu
    return card if gpu.index == index else replace(card, device=replace(card.device, gpu=replace(gpu, index=index)))
