"""Opens what reads a whole cluster."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from podgpu.assembly import insight_settings, machine
from podgpu.assembly.api_server import check_access, open_api_server, open_cluster_api
from podgpu.assembly.exporter import open_exporter
from podgpu.cluster.agent_reader import AgentReader, DirectClient, ProxyClient, open_login
from podgpu.cluster.allocations import KubeAllocations, wanted_objects
from podgpu.cluster.discovery import BackedDiscovery, Discovery, NodeTarget, PodDiscovery, StaticDiscovery
from podgpu.cluster.federation import MOST_BYTES, Federation, Upstream, UpstreamServer
from podgpu.cluster.fit.statement import fit_of_store
from podgpu.cluster.login_options import LoginOptions
from podgpu.cluster.loop import AT_ONCE, PART, ClusterLoop, PublishingLoop
from podgpu.cluster.node_state import ReadFault, SnapshotReader
from podgpu.cluster.report.bill import bill_of_query
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.moment import StoreMoments
from podgpu.cluster.store.nodes import StoreDiscovery
from podgpu.cluster.store.options import StoreOptions
from podgpu.cluster.store.pod_history import StoreHistory
from podgpu.config import ClusterOptions, Config, PriceOptions
from podgpu.errors import UserError
from podgpu.kube.api import ApiServer
from podgpu.kube.cluster_watch import ClusterWatch
from podgpu.kube.endpoints import Endpoints
from podgpu.model import Cluster, Snapshot
from podgpu.model.ports import Closable
from podgpu.net.login import Login
from podgpu.sources.dcgm import NAME as DCGM
from podgpu.sources.dcgm import PORT
from podgpu.sources.dcgm.options import DcgmOptions
from podgpu.supervise import end

if TYPE_CHECKING:
    from podgpu.serve.cluster.pages import BillMaker, FitMaker


@dataclass
class OpenCluster:
    """A cluster that `loop` reads until it is closed.

    `history`, `moments`, `bills` and `fits` are there where a store is read.
    """

    loop: PublishingLoop
    to_close: Sequence[Closable]
    api: ApiServer | None = None
    history: StoreHistory | None = None
    bills: "BillMaker | None" = None
    fits: "FitMaker | None" = None
    moments: StoreMoments | None = None

    def __post_init__(self) -> None:
        self.running = self.loop.supervisor.supervise(PART, self.loop.run)

    async def check(self) -> None:
        """Close it and raise a UserError if there is no access to the cluster."""
        try:
            if self.api:
                await check_access(self.api)
        except UserError:
            await self.close()
            raise

    async def close(self) -> None:
        await end(self.running)
        await self.loop.close()
        for part in self.to_close:
            await part.close()


def open_cluster(config: Config) -> OpenCluster:
    """Begin to read the cluster, within a running event loop. Raises UserError."""
    chosen = config.of(ClusterOptions)
    if chosen.upstreams or chosen.contexts:
        return _of_clusters(config, chosen)
    options = config.of(StoreOptions)
    store = StoreDiscovery(Store(options), options.url) if options.url else None
    if chosen.agents:
        return _of_addresses(config, chosen, store)
    if store is None or config.kube_kubeconfig or config.kube_context:
        return _of_kubernetes(config, chosen, open_cluster_api(config), store)
    if api := open_api_server(config):
        return _of_kubernetes(config, chosen, api, store)
    return _opened(config, store, store.open_reader, store)


class ContextUpstream:
    """A cluster that this process reads itself, through a context of the kubeconfig."""

    def __init__(self, name: str, opened: OpenCluster) -> None:
        self.name = name
        self._opened = opened

    async def read(self) -> Cluster:
        if not self._opened.loop.ready:
            raise ReadFault("starting", "")
        return self._opened.loop.cluster

    async def full(self, node: str) -> Snapshot:
        return await self._opened.loop.full(node)

    async def close(self) -> None:
        await self._opened.close()


def _of_clusters(config: Config, chosen: ClusterOptions) -> OpenCluster:
    """Read several clusters side by side, from their own servers or through contexts. Their stores are not read."""
    names = [name for name, _ in (*chosen.upstreams, *chosen.contexts)]
    if len(set(names)) < len(names) or chosen.agents or config.of(StoreOptions).url:
        raise UserError(
            "--cluster.upstreams and --cluster.contexts need names that differ, and go with neither --cluster.agents "
            "nor --prometheus.url; give these to the podgpu cluster of each cluster"
        )
    login = open_login(config.of(LoginOptions), [url for _, url in chosen.upstreams])
    client = DirectClient(timeout=chosen.timeout, login=login, limit=MOST_BYTES)
    upstreams: list[Upstream] = [UpstreamServer(name, url, client) for name, url in chosen.upstreams]
    for name, context in chosen.contexts:
        own = replace(config, kube_context=context)
        opened = _of_kubernetes(own, chosen, open_cluster_api(own), None)
        upstreams.append(ContextUpstream(name, opened))
    federation = Federation(
        upstreams,
        interval=chosen.interval,
        settings=insight_settings(config),
        name=chosen.name or "",
        remember=chosen.remember,
    )
    return OpenCluster(federation, [client])


def _opened(
    config: Config,
    discovery: Discovery,
    open_reader: Callable[[NodeTarget], SnapshotReader],
    store: StoreDiscovery | None,
    *to_close: Closable,
    api: ApiServer | None = None,
    allocations: KubeAllocations | None = None,
) -> OpenCluster:
    """A store, if there is one, gives the past, and the nodes that nothing else can read."""

    def open_any(target: NodeTarget) -> SnapshotReader:
        return store.open_reader(target) if store and target.is_fallback else open_reader(target)

    chosen = config.of(ClusterOptions)
    loop = ClusterLoop(
        BackedDiscovery(discovery, store) if store and discovery is not store else discovery,
        open_any,
        interval=chosen.interval,
        settings=insight_settings(config),
        name=chosen.name or "",
        allocations=allocations,
        has_store=store is not None,
        remember=chosen.remember,
    )
    if store is None:
        return OpenCluster(loop, to_close, api)
    options, prices = config.of(StoreOptions), config.of(PriceOptions).price
    history = StoreHistory(Store(options))
    bills, fits = partial(bill_of_query, options, prices), partial(fit_of_store, options, prices)
    moments = StoreMoments(Store(options), insight_settings(config), name=chosen.name or "", interval=chosen.interval)
    return OpenCluster(loop, (*to_close, history, moments), api, history, bills, fits, moments)


def _of_addresses(config: Config, chosen: ClusterOptions, store: StoreDiscovery | None) -> OpenCluster:
    login = open_login(config.of(LoginOptions), chosen.agents)
    client, turn = DirectClient(timeout=chosen.timeout, login=login), asyncio.Lock()

    def open_reader(target: NodeTarget) -> SnapshotReader:
        return AgentReader(client, target.urls[0], turn=turn)

    return _opened(config, StaticDiscovery(chosen.agents), open_reader, store, client)


def _of_kubernetes(config: Config, chosen: ClusterOptions, api: ApiServer, store: StoreDiscovery | None) -> OpenCluster:
    watch = open_watch(config, api)
    allocations = KubeAllocations(watch, config.kube_pod_labels, config.sharing_namespaces)
    is_proxied = chosen.via == "proxy" or (chosen.via == "auto" and not machine.is_in_pod())
    login = _login_to_pods(config.of(LoginOptions), chosen.scheme, proxied=is_proxied)
    # Not the one with the watches: agents that hang would keep its connections busy.
    proxy = open_cluster_api(config, connections=AT_ONCE) if is_proxied else None
    timeout = chosen.timeout
    client = ProxyClient(proxy, timeout=timeout) if proxy else DirectClient(timeout=timeout, login=login)
    turn = asyncio.Lock()

    def open_reader(target: NodeTarget) -> SnapshotReader:
        if target.origin == DCGM:
            return open_exporter(config, target, allocations, proxy)
        return AgentReader(client, target.urls[0], target.node, turn=turn)

    discovery = _discovery(config, chosen, api, proxied=is_proxied)
    return _opened(config, discovery, open_reader, store, client, api, api=api, allocations=allocations)


def _login_to_pods(chosen: LoginOptions, scheme: str, *, proxied: bool) -> Login:
    login = open_login(chosen)
    if proxied and login.identifies:
        raise UserError(
            "the API server's proxy passes no login on to agents; run podgpu cluster in the cluster, or reach the pods "
            "yourself with --cluster.via=direct, or leave out --login"
        )
    if scheme == "http" and chosen != LoginOptions() and not proxied:
        raise UserError("a login is sent to agents only over TLS; give --cluster.scheme=https, or leave out --login")
    return login


def _discovery(config: Config, chosen: ClusterOptions, api: ApiServer, *, proxied: bool) -> PodDiscovery:
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
        namespace=options.namespace,
        port=options.port or PORT,
        fixed=options.port is not None,
        path=options.path,
        proxied=proxied,
    )
    return PodDiscovery(agents, exporters)


def open_watch(config: Config, api: ApiServer) -> ClusterWatch:
    labels = config.kube_workload_labels
    return ClusterWatch(
        api,
        wanted_objects((*config.kube_pod_labels, *labels)),
        workload_labels=labels,
        nearest_owner=config.kube_workload_owner == "nearest",
    )
