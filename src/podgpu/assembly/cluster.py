"""Opens what reads a whole cluster."""

import asyncio
from typing import Protocol

from podgpu.assembly import machine
from podgpu.assembly.exporter import open_exporter
from podgpu.assembly.whole import open_reader as open_objects
from podgpu.cluster.agents.agent import AgentReader, Fetch
from podgpu.cluster.agents.client import Client
from podgpu.cluster.agents.proxy import ProxyClient
from podgpu.cluster.given import KubeGiven
from podgpu.cluster.loop import AT_ONCE, ClusterLoop
from podgpu.cluster.reader import Reader
from podgpu.cluster.survey import GivenAgents, Place, PodSurvey
from podgpu.config import ClusterOptions, Config
from podgpu.errors import UserError
from podgpu.kube.api import Api
from podgpu.kube.endpoints import Endpoints
from podgpu.model import Cluster, Snapshot
from podgpu.sources.dcgm import PATH, PORT
from podgpu.sources.dcgm.options import Options as DcgmOptions

_NO_SERVER = (
    "there is no API server to ask about the cluster; name a kubeconfig with --kube.kubeconfig, "
    "or the addresses of agents with --cluster.agents"
)


class Closable(Protocol):
    async def close(self) -> None: ...


class OpenCluster:
    """A cluster that is being read, until it is closed."""

    def __init__(self, loop: ClusterLoop, *others: Closable) -> None:
        self._loop = loop
        self._others = others
        self.running = asyncio.create_task(loop.run())

    @property
    def ready(self) -> bool:
        return self._loop.ready

    @property
    def cluster(self) -> Cluster:
        """The newest one: the same object until there is a newer one. Its nodes come in while `ready` is false."""
        return self._loop.cluster

    async def changed(self, seen: Cluster) -> Cluster:
        """Return the newest cluster once it is another than `seen`."""
        return await self._loop.changed(seen)

    async def full(self, name: str) -> Snapshot:
        """Fetch a node's snapshot with everything in it. Raises UserError."""
        return await self._loop.full(name)

    async def close(self) -> None:
        self.running.cancel()
        await asyncio.gather(self.running, return_exceptions=True)
        await self._loop.close()
        for one in self._others:
            await one.close()


def open_cluster(config: Config) -> OpenCluster:
    """Begin to read the cluster. Comes within a running event loop. Raises UserError."""
    chosen = config.of(ClusterOptions)
    return _of_addresses(chosen) if chosen.agents else _of_kubernetes(config, chosen)


def _of_addresses(chosen: ClusterOptions) -> OpenCluster:
    client = Client(timeout=chosen.timeout)
    loop = ClusterLoop(
        GivenAgents(chosen.agents),
        lambda place: AgentReader(client, place.urls[0]),
        interval=chosen.interval,
        name=chosen.name or "",
    )
    return OpenCluster(loop, client)


def _of_kubernetes(config: Config, chosen: ClusterOptions) -> OpenCluster:
    api = machine.open_api_server(config)
    if api is None:
        raise UserError(_NO_SERVER)
    given = KubeGiven(open_objects(config, api), config.kube_pod_labels)
    client = _client(config, chosen)

    def open_reader(place: Place) -> Reader:
        if place.origin == "dcgm":
            return open_exporter(config, place, given)
        return AgentReader(client, place.urls[0], place.node)

    loop = ClusterLoop(
        _survey(config, chosen, api),
        open_reader,
        interval=chosen.interval,
        name=chosen.name or "",
        given=given,
    )
    return OpenCluster(loop, client, api)


class _Client(Fetch, Closable, Protocol):
    """Fetches, and is closed at the end."""


def _client(config: Config, chosen: ClusterOptions) -> _Client:
    if chosen.via == "direct":
        return Client(timeout=chosen.timeout)
    # Not the one with the watches: agents that hang would keep its connections busy.
    api = machine.open_api_server(config, connections=AT_ONCE)
    if api is None:
        raise UserError(_NO_SERVER)
    return ProxyClient(api, timeout=chosen.timeout)


def _survey(config: Config, chosen: ClusterOptions, api: Api) -> PodSurvey:
    agents = Endpoints(
        api,
        node=None,
        selector=chosen.selector,
        namespace=chosen.namespace or "",
        port=chosen.port,
        path="",
        port_name="http",
        proxied=chosen.via == "proxy",
    )
    if chosen.via == "proxy":  # pages of exporters are fetched from the pods themselves
        return PodSurvey(agents, None)
    options = config.of(DcgmOptions)
    exporters = Endpoints(
        api, node=None, selector=options.selector, namespace=options.namespace or "", port=PORT, path=PATH
    )
    return PodSurvey(agents, exporters)
