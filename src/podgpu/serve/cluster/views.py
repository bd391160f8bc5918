"""The pages of a cluster by path, each joined from what was rendered of its nodes."""

import asyncio
import gzip
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar
from weakref import ReferenceType, ref

from podgpu import log
from podgpu.model import Cluster, ClusterNode
from podgpu.model.snapshot import set_aside
from podgpu.option import OptionsOf
from podgpu.option.value import NATIVE
from podgpu.serve.pages import BodyPart, gzip_stream
from podgpu.views.cluster import json, metrics, page
from podgpu.views.cluster.metrics import RenderedFamilies, rendered
from podgpu.views.dialects import PREFIX, container_json, dialects_of, pod_gpu_map
from podgpu.views.dialects._dcgm.counters import DcgmPageOptions
from podgpu.views.exposition import Format
from podgpu.views.series import EVERYTHING, Family, FamilyQuery, SeriesFilter

YIELD_SECONDS = 0.005  # of work before other tasks get their turn
_FASTEST = 1

T = TypeVar("T")


class LoopYielder:
    """Lets other tasks run now and then: a thousand nodes take seconds to render."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    async def maybe_yield(self) -> None:
        if time.monotonic() - self._began > YIELD_SECONDS:
            await asyncio.sleep(0)
            self._began = time.monotonic()


class RenderedNodes(Generic[T]):
    """What was rendered of each node, kept until the node changes. During an update, some are newer than others.

    A node is the same object until something about it changes. It is not kept alive here. `version` grows with every
    change.
    """

    def __init__(self, render: Callable[[ClusterNode], T]) -> None:
        self._render = render
        self._kept: dict[str, tuple[ReferenceType[ClusterNode], T]] = {}
        self.version = 0
        self._failed: set[str] = set()

    @property
    def values(self) -> Collection[T]:
        """In the order of the nodes."""
        return [rendered for _, rendered in self._kept.values()]

    def clear(self) -> None:
        self._kept.clear()
        self.version += 1

    async def update(self, nodes: Sequence[ClusterNode]) -> None:
        yielder = LoopYielder()
        for node in nodes:
            before = self._kept.get(node.name)
            if before is None or before[0]() is not node:
                self._kept[node.name] = ref(node), self._rendered(node)
                self.version += 1
                await yielder.maybe_yield()
        if list(self._kept) != [node.name for node in nodes]:
            self._kept = {node.name: self._kept[node.name] for node in nodes}
            self._failed &= self._kept.keys()
            self.version += 1

    def _rendered(self, node: ClusterNode) -> T:
        """Render a node. If its document cannot be rendered, show it without: the others are shown in any case."""
        try:
            rendered = self._render(node)
        except Exception as error:
            if node.name not in self._failed:
                self._failed.add(node.name)
                log.error("a node cannot be shown; please report this", node=node.name, error=error)
            return self._render(set_aside(node, error))
        self._failed.discard(node.name)
        return rendered


class ClusterView(ABC, Generic[T]):
    """A page, made node by node. It can be read at any time in between."""

    content_type = ""  # if empty, that of the format

    def __init__(self, of_node: Callable[[ClusterNode], T]) -> None:
        self._nodes = RenderedNodes(of_node)
        self._changes = 0

    @property
    def version(self) -> int:
        """Grows with every change."""
        return self._nodes.version + self._changes

    def forget(self) -> None:
        """Free what was rendered: the page has not been requested recently."""
        self._nodes.clear()

    @abstractmethod
    async def update(self, cluster: Cluster, *, packing: bool) -> None:
        """Render what has changed; with `packing`, compress it too."""

    @abstractmethod
    async def body(self, form: Format, *, gzipped: bool) -> Sequence[bytes]:
        """Join what is there."""


class ClusterListView(ClusterView[BodyPart]):
    """A document with an entry for each node. `frame` returns what comes before the entries, and after them.

    `empty` is the whole document without any entry, if that is not just the frame.
    """

    def __init__(
        self,
        entry: Callable[[ClusterNode], bytes],
        frame: Callable[[Cluster], tuple[bytes, bytes]],
        *,
        separator: bytes,
        content_type: str,
        empty: bytes | None = None,
    ) -> None:
        super().__init__(lambda node: BodyPart(separator + text if (text := entry(node)) else b""))
        self._frame = frame
        self._separator = separator
        self.content_type = content_type
        self._empty = empty
        self._around = (b"", b"")

    async def update(self, cluster: Cluster, *, packing: bool) -> None:
        await self._nodes.update(cluster.nodes)
        if packing:
            await self._deflate()
        around = self._frame(cluster)
        if around != self._around:
            self._around = around
            self._changes += 1

    async def body(self, _form: Format, *, gzipped: bool) -> Sequence[bytes]:
        if gzipped:
            await self._deflate()
        parts = self._parts()
        return gzip_stream(parts) if gzipped else [part.plain for part in parts]

    async def _deflate(self) -> None:
        yielder = LoopYielder()
        for entry in self._nodes.values:
            _ = entry.deflated
            await yielder.maybe_yield()

    def _parts(self) -> list[BodyPart]:
        entries = [entry for entry in self._nodes.values if entry.plain]
        if not entries and self._empty is not None:
            return [BodyPart(self._empty)]
        before, after = self._around
        return enclosed(before, entries, after, self._separator)


def enclosed(before: bytes, entries: Collection[BodyPart], after: bytes, separator: bytes) -> list[BodyPart]:
    """Join entries, each of which begins with a separator. That of the first one is left out."""
    first, *others = entries or [BodyPart(b"")]
    return [BodyPart(before + first.plain.removeprefix(separator)), *others, BodyPart(after)]


class ClusterMetricsView(ClusterView[RenderedFamilies]):
    """A page of metrics. `whole` renders those of the cluster itself."""

    def __init__(
        self, of_node: Callable[[ClusterNode], RenderedFamilies], whole: Callable[[Cluster], RenderedFamilies]
    ) -> None:
        super().__init__(of_node)
        self._render_whole = whole
        self._whole: RenderedFamilies = ()

    async def update(self, cluster: Cluster, *, packing: bool) -> None:
        await self._nodes.update(cluster.nodes)
        self._whole = self._render_whole(cluster)
        self._changes += 1

    async def body(self, form: Format, *, gzipped: bool) -> Sequence[bytes]:
        return await self.some(None, form, gzipped=gzipped)

    async def some(self, asked: FamilyQuery | None, form: Format, *, gzipped: bool) -> Sequence[bytes]:
        """Join the families that a client asks for, or all."""
        plain = metrics.join([self._whole, *self._nodes.values], form, asked)
        return [await asyncio.to_thread(gzip.compress, plain, _FASTEST, mtime=0)] if gzipped else [plain]


# Makes a document for one request.
Queried = Callable[[Mapping[str, str]], ClusterView[Any]]


@dataclass(frozen=True, slots=True)
class ClusterPageRegistry:
    """`queried` has the documents that a query can narrow."""

    views: Mapping[str, ClusterView[Any]]
    queried: Mapping[str, Queried] = field(default_factory=dict)

    @property
    def dialects(self) -> list[str]:
        return dialects_of(self.views)


def register_cluster_pages(
    options: OptionsOf, series_limit: int, choice: SeriesFilter = EVERYTHING
) -> ClusterPageRegistry:
    """`series_limit` is for the series of one node on a page. Only the names of `choice` are followed."""
    maps = options(pod_gpu_map.PodGpuMapOptions)

    def metrics_view(
        of_node: Callable[[ClusterNode], Sequence[Family]], of_cluster: Callable[[Cluster], Sequence[Family]]
    ) -> ClusterView[Any]:
        return ClusterMetricsView(
            lambda node: rendered(choice.apply(of_node(node)), series_limit),
            lambda cluster: rendered(choice.apply(of_cluster(cluster)), series_limit),
        )

    containers = partial(_containers, options)
    return ClusterPageRegistry(
        {
            "/": ClusterListView(page.row, page.frame, separator=b"", content_type="text/html; charset=utf-8"),
            "/api/v1/cluster": ClusterListView(json.row, json.frame, separator=b",", content_type="application/json"),
            PREFIX + NATIVE: metrics_view(metrics.of_node, metrics.of_cluster),
            "/metrics/pod-gpu-map": metrics_view(pod_gpu_map.of_node, partial(pod_gpu_map.of_cluster, maps)),
            "/metrics/nodes": metrics_view(pod_gpu_map.by_node, lambda _: []),
            **dict.fromkeys(container_json.DIALECT.documents, containers({})),
        },
        dict.fromkeys(container_json.DIALECT.documents, containers),
    )


def _containers(options: OptionsOf, query: Mapping[str, str]) -> ClusterView[Any]:
    return ClusterListView(
        partial(container_json.of_node, options(DcgmPageOptions), query),
        lambda _: (container_json.OPEN, container_json.CLOSE),
        separator=container_json.SEPARATOR,
        content_type="application/json",
        empty=container_json.NO_CONTAINERS,
    )
