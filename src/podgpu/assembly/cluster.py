"""Opens what reads a whole cluster."""

import asyncio

from podgpu.cluster.agents.agent import AgentReader
from podgpu.cluster.agents.client import Client
from podgpu.cluster.loop import ClusterLoop
from podgpu.cluster.reader import Reader
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.options import Options as StoreOptions
from podgpu.cluster.store.survey import StoreSurvey
from podgpu.cluster.survey import GivenAgents, Place, Survey
from podgpu.config import ClusterOptions, Config
from podgpu.errors import UserError
from podgpu.model import Cluster, Snapshot


class OpenCluster:
    """A cluster that is being read, until it is closed."""

    def __init__(self, loop: ClusterLoop, client: Client) -> None:
        self._loop = loop
        self._client = client
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
        await self._client.close()


def open_cluster(config: Config) -> OpenCluster:
    """Begin to read the cluster. Comes within a running event loop. Raises UserError."""
    chosen = config.of(ClusterOptions)
    client = Client(timeout=chosen.timeout)
    store = _store(config)
    survey = store or _survey(chosen)

    def open_reader(place: Place) -> Reader:
        return store.open_reader(place) if store else AgentReader(client, place.urls[0], place.node)

    loop = ClusterLoop(survey, open_reader, interval=chosen.interval, name=chosen.name or "")
    return OpenCluster(loop, client)


def _store(config: Config) -> StoreSurvey | None:
    """With a store, nobody else is asked for the use of GPUs."""
    options = config.of(StoreOptions)
    return StoreSurvey(Store(options), options.url) if options.url else None


def _survey(chosen: ClusterOptions) -> Survey:
    if not chosen.agents:
        raise UserError(
            "there is no API server to find the agents with; give their addresses with --cluster.agents, or a store "
            "with --prometheus.url"
        )
    return GivenAgents(chosen.agents)
