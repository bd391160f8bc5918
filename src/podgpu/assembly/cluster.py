"""Opens what reads a whole cluster."""

import asyncio
from collections.abc import Collection

from msgspec.structs import replace

from podgpu import sharing
from podgpu.assembly import insight_settings, machine
from podgpu.assembly.api_server import check_access, open_api_server, open_cluster_api
from podgpu.assembly.exporter import open_exporter
from podgpu.cluster.agent_reader import AgentReader, DirectClient, open_login
from podgpu.cluster.discovery import BackedDiscovery, NodeTarget, PodDiscovery, StaticDiscovery
from podgpu.cluster.kube_allocations import KubeAllocations
from podgpu.cluster.login_options import LoginOptions
from podgpu.cluster.loop import AT_ONCE, PART, ClusterLoop
from podgpu.cluster.node_state import SnapshotReader
from podgpu.cluster.pod_proxy import ProxyClient
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.nodes import StoreDiscovery
from podgpu.cluster.store.options import StoreOptions
from podgpu.cluster.store.pod_history import StoreHistory
from podgpu.config import ClusterOptions, Config
from podgpu.errors import UserError
from podgpu.kube.api import Api
from podgpu.kube.cluster_watch import ClusterWatch, ObjectFilter
from podgpu.kube.endpoints import Endpoints
from podgpu.model import Cluster, Pod, Snapshot
from podgpu.model.ports import Closable
from podgpu.net.login import Login
from podgpu.sources.dcgm import NAME as DCGM
from podgpu.sources.dcgm import PORT
from podgpu.sources.dcgm.options import DcgmOptions
from podgpu.supervise import end

NODE_LABELS = "nvidia.com/"  # NVIDIA's discovery describes a node's GPUs by these
HASHES = ("pod-template-hash", "rollouts-pod-template-hash")  # stand in for an owner that cannot be read


class OpenCluster:
    """A cluster that is being read, until it is closed. `history` is there where a store is read."""

    def __init__(
        self,
        loop: ClusterLoop,
        *others: Closable,
        api: Api | None = None,
        history: StoreHistory | None = None,
    ) -> None:
        self._loop = loop
        self._others = (*others, history) if history else others
        self.history = history
        self._api = api
        self.supervisor = loop.supervisor
        self.interval = loop.interval
        self.running = self.supervisor.supervise(PART, loop.run)

    @property
    def ready(self) -> bool:
        return self._loop.ready

    @property
    def cluster(self) -> Cluster:
        """The newest one: the same object until there is a newer one. Its nodes come in while `ready` is false."""
        return self._loop.cluster

    @property
    def seconds_behind(self) -> float:
        """How long ago it was last looked how the nodes stand."""
        return self._loop.seconds_behind

    async def changed(self, seen: Cluster) -> Cluster:
        """Return the newest cluster once it is another than `seen`."""
        return await self._loop.changed(seen)

    async def full(self, name: str) -> Snapshot:
        """Fetch a node's snapshot with everything in it. Raises UserError."""
        return await self._loop.full(name)

    async def check(self) -> None:
        """Close it and raise a UserError if there is no access to the cluster."""
        try:
            if self._api:
                await check_access(self._api)
        except UserError:
            await self.close()
            raise

    async def close(self) -> None:
        await end(self.running)
        await self._loop.close()
        for one in self._others:
            await one.close()


def open_cluster(config: Config) -> OpenCluster:
    """Begin to read the cluster. Comes within a running event loop. Raises UserError."""
    chosen, store = config.of(ClusterOptions), _open_store(config)
    if chosen.agents:
        return _of_addresses(config, chosen, store)
    if store is None or config.kube_kubeconfig or config.kube_context:
        return _of_kubernetes(config, chosen, open_cluster_api(config), store)
    api = open_api_server(config)
    return _of_kubernetes(config, chosen, api, store) if api else _of_store(config, chosen, store)


def _open_store(config: Config) -> StoreDiscovery | None:
    url = config.of(StoreOptions).url
    return StoreDiscovery(Store(config.of(StoreOptions)), url) if url else None


def _history(config: Config, store: StoreDiscovery | None) -> StoreHistory | None:
    return StoreHistory(Store(config.of(StoreOptions))) if store else None


def _of_store(config: Config, chosen: ClusterOptions, store: StoreDiscovery) -> OpenCluster:
    """Nothing else can be asked: there are neither agents nor an API server."""
    loop = ClusterLoop(
        store,
        store.open_reader,
        interval=chosen.interval,
        settings=insight_settings(config),
        name=chosen.name or "",
    )
    return OpenCluster(loop, history=_history(config, store))


def _of_addresses(config: Config, chosen: ClusterOptions, store: StoreDiscovery | None) -> OpenCluster:
    login = open_login(config.of(LoginOptions), chosen.agents)
    client, turn = DirectClient(timeout=chosen.timeout, login=login), asyncio.Lock()

    def open_reader(target: NodeTarget) -> SnapshotReader:
        if store is not None and target.is_fallback:
            return store.open_reader(target)
        return AgentReader(client, target.urls[0], turn=turn)

    agents = StaticDiscovery(chosen.agents)
    loop = ClusterLoop(
        BackedDiscovery(agents, store) if store else agents,
        open_reader,
        interval=chosen.interval,
        settings=insight_settings(config),
        name=chosen.name or "",
    )
    return OpenCluster(loop, client, history=_history(config, store))


def _of_kubernetes(
    config: Config, chosen: ClusterOptions, api: Api, store: StoreDiscovery | None
) -> OpenCluster:
    """Agents give the present and the evidence, a store the past, and nodes that no agent tells of."""
    allocations = _allocations(config, api)
    is_proxied = chosen.via == "proxy" or (chosen.via == "auto" and not machine.is_in_pod())
    login = _login_to_pods(config.of(LoginOptions), chosen.scheme, proxied=is_proxied)
    # Not the one with the watches: agents that hang would keep its connections busy.
    proxy = open_cluster_api(config, connections=AT_ONCE) if is_proxied else None
    timeout = chosen.timeout
    client = ProxyClient(proxy, timeout=timeout) if proxy else DirectClient(timeout=timeout, login=login)
    turn = asyncio.Lock()

    def open_reader(target: NodeTarget) -> SnapshotReader:
        if store is not None and target.is_fallback:
            return store.open_reader(target)
        if target.origin == DCGM:
            return open_exporter(config, target, allocations, proxy)
        return AgentReader(client, target.urls[0], target.node, turn=turn)

    pods = _discovery(config, chosen, api, proxied=is_proxied)
    loop = ClusterLoop(
        BackedDiscovery(pods, store) if store else pods,
        open_reader,
        interval=chosen.interval,
        settings=insight_settings(config),
        name=chosen.name or "",
        allocations=allocations,
    )
    return OpenCluster(loop, client, api, api=api, history=_history(config, store))


def _login_to_pods(chosen: LoginOptions, scheme: str, *, proxied: bool) -> Login:
    login = open_login(chosen)
    if proxied and login.identifies:
        raise UserError(
            "the API server's proxy passes no login on to agents; run podgpu cluster in the cluster, or reach the pods "
            "yourself with --cluster.via=direct, or leave out --login"
        )
    if scheme == "http" and chosen != LoginOptions() and not proxied:
        raise UserError(
            "agents are logged in to by TLS alone; give --cluster.scheme=https, or leave out --login"
        )
    return login


def _discovery(config: Config, chosen: ClusterOptions, api: Api, *, proxied: bool) -> PodDiscovery:
    agents = Endpoints(
        api,
        node=None,
        selector=chosen.selector,
        namespace=chosen.namespace,
        daemon_set=chosen.daemonset,
        port=chosen.port,
        path="",
        port_name="http",
        proxied=proxied,
        scheme=chosen.scheme,
    )
    options = config.of(DcgmOptions)
    exporters = Endpoints(
        api,
        node=None,
        selector=options.selector,
        namespace=options.namespace or "",
        port=options.port or PORT,
        fixed=options.port is not None,
        path=options.path,
        proxied=proxied,
    )
    return PodDiscovery(agents, exporters)


def _allocations(config: Config, api: Api) -> KubeAllocations:
    return KubeAllocations(open_object_reader(config, api), config.kube_pod_labels, config.sharing_namespaces)


def open_object_reader(config: Config, api: Api) -> ClusterWatch:
    labels = config.kube_workload_labels
    return ClusterWatch(
        api,
        wanted_objects((*config.kube_pod_labels, *labels)),
        workload_labels=labels,
        nearest_owner=config.kube_workload_owner == "nearest",
    )


def wanted_objects(pod_labels: Collection[str] = ()) -> ObjectFilter:
    """`pod_labels` are kept besides those that sharing systems look at."""
    systems = sharing.systems()
    signs, shown = sharing.signs_of(systems), {*pod_labels, *HASHES}
    of_nodes = (NODE_LABELS, *sharing.node_labels_of(systems))

    def trimmed(pod: Pod) -> Pod | None:
        if pod.finished or not sharing.concerns(pod, signs):
            return None
        labels = {key: one for key, one in pod.labels.items() if key in shown or key.startswith(signs)}
        return replace(pod, labels=labels)

    return ObjectFilter(
        pod=trimmed,
        pod_annotations=sharing.annotations_of(systems),
        node_annotations=sharing.node_annotations_of(systems),
        node_label=lambda name: name.startswith(of_nodes),
    )
