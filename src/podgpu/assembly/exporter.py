"""Reads a node without an agent from the pages of its dcgm-exporters, by the same means as an agent does."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from functools import partial

from podgpu.agent.attribution import Attribution
from podgpu.agent.loop import Agent
from podgpu.assembly import insight_settings
from podgpu.catalog.agent_parts import APISERVER
from podgpu.cluster.agent_reader import ProxyPageClient
from podgpu.cluster.allocations import KubeAllocations
from podgpu.cluster.discovery import NodeTarget
from podgpu.cluster.node_state import ReadFault
from podgpu.config import ClusterOptions, Config
from podgpu.kube.api import ApiServer
from podgpu.model import PartStatus, Pod, Snapshot, Workload, Written
from podgpu.sources.dcgm import NAME
from podgpu.sources.dcgm.options import DcgmOptions
from podgpu.sources.dcgm.page import PageClient
from podgpu.sources.dcgm.source import DcgmSource, FixedPages
from podgpu.views.cluster.json import slim

_REASONS = {
    "page_unreachable": "unreachable",
    "page_late": "timeout",
    "page_refused": "http_error",
    "page_garbage": "garbage",
    "page_too_large": "too_large",
    "no_gpu": "no_gpu",
}


class ExporterReader:
    origin = NAME
    written: Written | None = None

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._turn = asyncio.Lock()

    async def read(self) -> Snapshot:
        return slim(await self.full())

    async def full(self) -> Snapshot:
        """Read the node now. A page may ask for it while the loop reads it: an agent does one cycle at a time."""
        async with self._turn:
            await self._agent.cycle()
            found = self._agent.snapshot
        fault = next((part.fault for part in found.parts if part.name == NAME), None)
        if fault is not None:
            raise ReadFault(_REASONS.get(fault.reason, "failed"), fault.detail or fault.reason)
        return found

    async def close(self) -> None:
        await self._agent.close()


def open_exporter(
    config: Config, target: NodeTarget, allocations: KubeAllocations, proxy: ApiServer | None = None
) -> ExporterReader:
    """With a `proxy`, the addresses are paths of that API server."""
    options, interval = config.of(DcgmOptions), config.of(ClusterOptions).interval
    finder = FixedPages(dict.fromkeys(target.urls, target.node))
    client = partial(ProxyPageClient, proxy) if proxy else PageClient
    source = DcgmSource(finder, client(timeout=options.timeout, max_bytes=options.max_bytes))
    pods = _WatchedPods(allocations, target.node)
    attribution = Attribution(
        interval=interval,
        namespaces=config.sharing_namespaces,
        pod_sources=[pods],
        workloads=pods,
        pod_labels=config.kube_pod_labels,
    )
    agent = Agent(
        source, node=target.node, interval=interval, settings=insight_settings(config), attribution=attribution
    )
    return ExporterReader(agent)


class _WatchedPods:
    """The pods of a node, from the watch of the whole cluster."""

    name = APISERVER.name

    def __init__(self, allocations: KubeAllocations, node: str) -> None:
        self._allocations = allocations
        self._node = node
        self.errors: Counter[str] = Counter()

    async def run(self) -> None:
        """The watch runs elsewhere."""

    def pods(self) -> tuple[Pod, ...] | None:
        found = self._allocations.pods_of(self._node)
        return None if found is None else tuple(found)

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=True)

    async def resolve(self, pods: Iterable[Pod]) -> dict[str, Workload]:
        known = self._allocations.workloads
        return {pod.uid: known[pod.uid] for pod in pods if pod.uid in known}
