"""Objects of one kind, such as the pods of a node or of all nodes, by a list and a watch of the API server.

A watch may miss changes. So it has a read deadline, the objects are listed again after every doubt, and from time to
time without any.
"""

import asyncio
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec
from msgspec.structs import replace

from podgpu.kube.api import POD_BYTES, ApiFault, ApiServer, ListPage, list_pages
from podgpu.kube.condition import Condition
from podgpu.kube.limits import MOST_PODS, Prefixes, name_crowded_pod
from podgpu.kube.object_cache import MOST_ITEMS, CachedObject, ObjectCache, version_number
from podgpu.kube.pod_object import decode_pod, pod_order, to_pod, waiting
from podgpu.kube.throttle import Backoff, CpuThrottle, spread
from podgpu.model import Fault, PartStatus, Pod

PAGE = 500
MOST_PAGES = 1000
# After a lost connection or an overload the watch resumes where it was. Any other status means a new list.
RESUMABLE = (0, 429, 503)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTiming:
    """Seconds. Pauses double from `first_pause` to `longest_pause`, and start over after `steady` good seconds.

    While a right is missing, they double up to `forbidden_pause`.
    """

    first_pause: float = 0.8
    longest_pause: float = 30.0
    steady: float = 120.0
    forbidden_pause: float = 300.0
    silence: float = 90.0  # bookmarks come about once a minute
    watch: float = 290.0
    relist: float = 600.0


class ObjectWatch(Generic[T]):
    """`paths` are those of the kind's versions, the best first. If a server has none of several, `is_absent` is set.

    `grant` is what to do if the right is missing. A list `from_cache` spares the server most work. But it comes in one
    piece, too large for the objects of a whole cluster.
    """

    def __init__(
        self,
        api: ApiServer,
        paths: Sequence[str],
        cache: ObjectCache[T],
        *,
        name: str,
        selector: Mapping[str, str] | None = None,
        timing: WatchTiming | None = None,
        grant: str = "",
        from_cache: bool = True,
    ) -> None:
        self.name = name
        self.is_absent = False
        self._api = api
        self._paths = tuple(paths)
        self._path = self._paths[0]
        self._cache = cache
        self._selector = dict(selector or {})
        self._timing = timing or WatchTiming()
        self._grant = grant
        self._page = PAGE
        self._backoff = Backoff(self._timing.first_pause, self._timing.longest_pause)
        self._good_since: float | None = None
        self._list_due = 0.0
        self._from_cache = self._may_list_from_cache = from_cache
        self._gone_at = -math.inf
        self._throttle = CpuThrottle()
        self._condition = Condition(self.name, errors=self._cache.errors)
        self.errors = self._condition.errors

    async def run(self) -> None:
        while True:
            pause = await self._round()
            await asyncio.sleep(pause)

    def status(self) -> PartStatus:
        return self._condition.status()

    @property
    def has_listed(self) -> bool:
        return self.is_absent or bool(self._cache.version)

    async def _round(self) -> float:
        """List if it is time, watch until that ends, and return how long to wait before the next round."""
        began = time.monotonic()
        try:
            if began >= self._list_due:
                await self._list()
            if self.is_absent:
                return self._timing.relist
            await self._watch()
        except ApiFault as fault:
            return self._failed(fault)
        # Do not ask in a tight loop if the server ends every watch at once.
        if time.monotonic() - began > self._timing.first_pause:
            return 0.0
        self._forgive_failures()
        return self._backoff.pause()

    async def _list(self) -> None:
        began = time.monotonic()
        self.is_absent = not await self._list_any_version()
        self._may_list_from_cache = self._from_cache
        self._list_due = 0.0 if self.is_absent else time.monotonic() + self._timing.relist
        self._condition.seconds = time.monotonic() - began
        self._recovered()

    async def _list_any_version(self) -> bool:
        """List by the path that worked last, else by the best that the server knows. Return False if it knows none."""
        for path in dict.fromkeys((self._path, *self._paths)):
            self._path = path
            try:
                if not (self._may_list_from_cache and await self._listed({"resourceVersion": "0"})):
                    await self._listed({})
            except ApiFault as fault:
                if fault.status != 404 or len(self._paths) == 1:
                    raise
            else:
                return True
        return False

    async def _listed(self, freshness: dict[str, str]) -> bool:
        """Replace the objects by a list. Return False, and keep them, if the server's cache is outdated."""
        try:
            found, version, excess = await self._pages(freshness)
        except ApiFault as fault:
            if fault.reason == "too_large" and self._page > 1:
                self._page = max(1, self._page // 8)
                return await self._listed({})
            raise
        if freshness and self._cache.is_old(version):
            return False
        self._cache.replace(found, version, excess)
        self._page = min(PAGE, 2 * self._page)
        return True

    async def _pages(self, freshness: dict[str, str]) -> tuple[list[CachedObject[T]], str, int]:
        """Return what is listed and its version, and how much of it was left out."""
        found: list[CachedObject[T]] = []
        version = ""
        excess = 0
        async for page in list_pages(
            self._api,
            self._path,
            ListPage[msgspec.Raw],
            self._selector,
            size=self._page,
            most=MOST_PAGES,
            freshness=freshness,
        ):
            version = version or page.metadata.resource_version
            found += await self._read((page.items or ())[: self._cache.most - len(found)])
            if page.items and len(found) >= self._cache.most:
                excess = 1
                break
        if not version:
            raise ApiFault("garbage", "a list without a version")
        return found, version, excess

    async def _read(self, items: Sequence[msgspec.Raw]) -> list[CachedObject[T]]:
        found: list[CachedObject[T]] = []
        for item in items:
            async with self._throttle.work():
                if known := self._cache.read(item):
                    found.append(known)
        return found

    async def _watch(self) -> None:
        left = min(
            self._timing.watch * random.uniform(0.9, 1.1),  # noqa: S311 - so that nodes do not return in step
            self._list_due - time.monotonic(),
        )
        query = {
            **self._selector,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._cache.version,
            "timeoutSeconds": str(max(1, round(left))),
        }
        async with self._api.stream(self._path, query, silence=self._timing.silence) as lines:
            self._recovered()
            async for line in lines:
                async with self._throttle.work():
                    self._take(line)
                    self._judge()
                if time.monotonic() >= self._list_due:
                    return

    def _take(self, line: bytes | None) -> None:
        if line is None:
            self.errors["too_large"] += 1
        elif (error := self._cache.apply(line)) is not None:
            raise error.fault()

    def _recovered(self) -> None:
        self._good_since = self._good_since or time.monotonic()
        self._judge()

    def _judge(self) -> None:
        """Report how many objects exceed the limit, if any do."""
        detail = f"more than {self._cache.most} objects; the others are left out"
        self._condition.worked(Fault(reason="too_many", detail=detail) if self._cache.excess else None)

    def _failed(self, fault: ApiFault) -> float:
        self._condition.api_failed(fault, self._grant)
        if fault.reason == "stalled" or fault.status not in RESUMABLE:
            self._list_due = 0.0
        if fault.reason == "gone":
            self._may_list_from_cache = False
            if self._is_first_gone():
                return max(spread(self._timing.first_pause), fault.retry_after)
        self._forgive_failures()
        return self._backoff.pause_after(fault, self._timing.forbidden_pause)

    def _is_first_gone(self) -> bool:
        """Distinguish a server that restarted, where a new list is enough, from one that says so time and again."""
        last, self._gone_at = self._gone_at, time.monotonic()
        return self._gone_at - last > self._timing.steady

    def _forgive_failures(self) -> None:
        """Begin with short pauses again after a watch that held for a while."""
        good, self._good_since = self._good_since, None
        if good is not None and time.monotonic() - good >= self._timing.steady:
            self._backoff.reset()


PODS = "/api/v1/pods"


class PodCache(ObjectCache[Pod]):
    """Without a `node`, the pods of all nodes. `trim` cuts off what is not needed, or returns None.

    `annotations` are prefixes of those to keep.
    """

    def __init__(
        self, node: str | None, trim: Callable[[Pod], Pod | None] | None = None, *, annotations: Prefixes = ()
    ) -> None:
        super().__init__(self._decoded, pod_order, most=MOST_ITEMS if node is None else MOST_PODS, largest=POD_BYTES)
        self._node = node
        self._annotations = annotations
        self._trim = trim

    def _decoded(self, data: bytes | msgspec.Raw) -> CachedObject[Pod] | None:
        item = decode_pod(data)
        if self._node not in (None, item.spec.node_name):
            return None
        pod = to_pod(item, self._annotations, self.errors)
        if self._node is None:
            node = item.spec.node_name
            pod = replace(pod, node=node, waiting=None if node else waiting(item))
        kept = self._trim(pod) if self._trim else pod
        return CachedObject(version_number(item.metadata.resource_version), pod.uid, kept)


class PodWatch(ObjectWatch[Pod]):
    """`node`, `trim` and `annotations` are those of `PodCache`."""

    def __init__(
        self,
        api: ApiServer,
        node: str | None,
        *,
        timing: WatchTiming | None = None,
        trim: Callable[[Pod], Pod | None] | None = None,
        grant: str = "",
        annotations: Prefixes = (),
    ) -> None:
        self._pods = PodCache(node, trim, annotations=annotations)
        selector = {} if node is None else {"fieldSelector": f"spec.nodeName={node}"}
        super().__init__(
            api,
            [PODS],
            self._pods,
            name="apiserver",
            selector=selector,
            timing=timing,
            grant=grant,
            from_cache=node is not None,
        )

    def status(self) -> PartStatus:
        return name_crowded_pod(super().status(), self.pods())

    def pods(self) -> tuple[Pod, ...] | None:
        return self._pods.items() if self._pods.version else None
