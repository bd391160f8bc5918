"""The node's pods by a list and a watch of the API server.

Three things keep the list true when the watch is not: a read deadline, a new list after every doubt, and a new
list from time to time without any doubt.
"""

import asyncio
import math
import random
import time
from dataclasses import dataclass

import msgspec

from podgpu.kube.api import Api, ApiFault
from podgpu.kube.api.pages import Page, pages
from podgpu.kube.condition import Condition
from podgpu.kube.pod_book import KnownPod, PodBook
from podgpu.model import Fault, PartStatus, Pod

PODS = "/api/v1/pods"
PAGE = 500
MOST_PAGES = 1000
# After a lost connection or an overload the watch goes on where it was. Any other status means a new list.
GO_ON = (0, 429, 503)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTiming:
    """Seconds. Pauses double from `first_pause` to `longest_pause`, and start over after `steady` good seconds."""

    first_pause: float = 0.8
    longest_pause: float = 30.0
    steady: float = 120.0
    forbidden_pause: float = 300.0
    silence: float = 90.0  # bookmarks come about once a minute
    watch: float = 290.0
    relist: float = 600.0


class PodWatch:
    """Without a `node`, the pods of all nodes."""

    name = "apiserver"

    def __init__(self, api: Api, node: str | None, *, timing: WatchTiming | None = None) -> None:
        self._api = api
        self._timing = timing or WatchTiming()
        self._book = PodBook(node)
        self._selector = {} if node is None else {"fieldSelector": f"spec.nodeName={node}"}
        self._page = PAGE
        self._failures = 0
        self._good_since: float | None = None
        self._list_due = 0.0
        self._cache_will_do = True
        self._gone_at = -math.inf
        self._condition = Condition(self.name, errors=self._book.errors)
        self.errors = self._condition.errors

    async def run(self) -> None:
        while True:
            pause = await self._round()
            await asyncio.sleep(pause)

    def pods(self) -> tuple[Pod, ...] | None:
        return self._book.pods() if self._book.version else None

    def status(self) -> PartStatus:
        return self._condition.status()

    async def _round(self) -> float:
        """List if it is time, watch until that ends, and return how long to wait before the next round."""
        began = time.monotonic()
        try:
            if began >= self._list_due:
                await self._list()
            await self._watch()
        except ApiFault as fault:
            return self._failed(fault)
        # Do not ask in a tight loop if the server ends every watch at once.
        return 0.0 if time.monotonic() - began > self._timing.first_pause else self._pause()

    async def _list(self) -> None:
        began = time.monotonic()
        if not (self._cache_will_do and await self._listed({"resourceVersion": "0"})):
            await self._listed({})
        self._cache_will_do = True
        self._list_due = time.monotonic() + self._timing.relist
        self._condition.seconds = time.monotonic() - began
        self._recovered()

    async def _listed(self, freshness: dict[str, str]) -> bool:
        """Take a list as the truth. Return False for an outdated list from the server's cache, which is not taken."""
        try:
            pods, version = await self._pages(freshness)
        except ApiFault as fault:
            if fault.reason == "too_large" and self._page > 1:
                self._page = max(1, self._page // 8)
                return await self._listed({})
            raise
        if freshness and self._book.is_old(version):
            return False
        self._book.replace(pods, version)
        self._page = min(PAGE, 2 * self._page)
        return True

    async def _pages(self, freshness: dict[str, str]) -> tuple[list[KnownPod], str]:
        pods: list[KnownPod] = []
        version = ""
        async for page in pages(
            self._api,
            PODS,
            Page[msgspec.Raw],
            self._selector,
            size=self._page,
            most=MOST_PAGES,
            freshness=freshness,
        ):
            pods += [known for item in page.items or () if (known := self._book.read(item))]
            version = version or page.metadata.resource_version
        if not version:
            raise ApiFault("garbage", "a list without a version")
        return pods, version

    async def _watch(self) -> None:
        left = min(
            self._timing.watch * random.uniform(0.9, 1.1),  # noqa: S311 - so that nodes do not return in step
            self._list_due - time.monotonic(),
        )
        query = {
            **self._selector,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._book.version,
            "timeoutSeconds": str(max(1, round(left))),
        }
        async with self._api.stream(PODS, query, silence=self._timing.silence) as lines:
            self._recovered()
            async for line in lines:
                self._condition.worked()
                self._take(line)
                if time.monotonic() >= self._list_due:
                    return

    def _take(self, line: bytes | None) -> None:
        if line is None:
            self.errors["too_large"] += 1
        elif (wrong := self._book.apply(line)) is not None:
            raise wrong.fault()

    def _recovered(self) -> None:
        self._good_since = self._good_since or time.monotonic()
        self._condition.worked()

    def _failed(self, fault: ApiFault) -> float:
        self._condition.failed(Fault(reason=fault.reason, detail=fault.detail))
        if fault.reason == "stalled" or fault.status not in GO_ON:
            self._list_due = 0.0
        if fault.reason == "gone":
            self._cache_will_do = False
            if self._is_first_gone():
                return max(_spread(self._timing.first_pause), fault.retry_after)
        least = self._timing.forbidden_pause if fault.reason == "forbidden" else 0.0
        return max(self._pause(), fault.retry_after, least)

    def _is_first_gone(self) -> bool:
        """Tell a server that restarted, where only a list is missing, from one that says so time and again."""
        last, self._gone_at = self._gone_at, time.monotonic()
        return self._gone_at - last > self._timing.steady

    def _pause(self) -> float:
        good, self._good_since = self._good_since, None
        if good is not None and time.monotonic() - good >= self._timing.steady:
            self._failures = 0
        longest = self._timing.first_pause * 2.0 ** min(self._failures, 16)
        self._failures += 1
        return _spread(min(longest, self._timing.longest_pause))


def _spread(pause: float) -> float:
    return pause * random.uniform(0.5, 1.0)  # noqa: S311 - so that nodes do not return in step
