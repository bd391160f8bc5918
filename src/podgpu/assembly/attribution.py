"""Whose GPU it is, from the parts that the source, the configuration and this machine offer."""

from podgpu.agent.attribution import Attribution
from podgpu.assembly import machine
from podgpu.assembly.source import chosen, of_all_nodes
from podgpu.config import Config
from podgpu.host.outsiders import Outsiders
from podgpu.host.procfs import Procfs
from podgpu.kube import PodSource
from podgpu.kube.api import Api
from podgpu.kube.log_dirs import LogDirs
from podgpu.kube.pod_watch import PodWatch
from podgpu.kube.podresources import PodResources
from podgpu.kube.pods_api import PodsApi
from podgpu.kube.resource_claims import ResourceClaims
from podgpu.kube.workloads import Workloads
from podgpu.sharing.inventory import Host
from podgpu.sources.tenants import Tenants

MANY_CARDS = 16_384  # of a cluster


def open_attribution(config: Config) -> Attribution:
    tenants = chosen(config).tenants
    if tenants:
        return _brought_along(config, tenants(PodResources.name, PodsApi.name, Procfs.name))
    return _of_all_nodes(config) if of_all_nodes(config) else _of_this_machine(config)


def by_processes_alone(config: Config) -> bool:
    """Whether nobody says what was given to whom."""
    source = chosen(config)
    return not (source.tenants or source.names_holders or machine.has_kubelet(config))


def _brought_along(config: Config, tenants: Tenants) -> Attribution:
    return Attribution(
        interval=config.interval,
        allocations=tenants.allocations,
        pod_sources=[tenants.pods],
        processes=tenants.processes,
        workloads=tenants.workloads,
        pod_labels=config.kube_pod_labels,
    )


def _of_this_machine(config: Config) -> Attribution:
    processes, root = Procfs(machine.procfs(config)), machine.root(config)
    has_kubelet = machine.has_kubelet(config)
    api = machine.open_api_server(config)
    allocations = PodResources(config.path_kubelet) if has_kubelet else None
    workloads = Workloads(api, name_labels=config.kube_workload_labels)
    return Attribution(
        interval=config.interval,
        allocations=allocations,
        dynamics=ResourceClaims(api, machine.node_name(config)) if api else None,
        pod_sources=_pod_sources(config, api),
        # Where no processes are listed there are none to look up.
        processes=processes if chosen(config).sees_processes else None,
        outsiders=Outsiders(root),
        # A pod that cannot see the kubelet's folder is no bare machine.
        books_outsiders=not has_kubelet and api is None,
        host=Host(root=root, pod_uid=processes.pod_uid),
        ratios=config.sharing_ratio_file or (),
        workloads=workloads,
        pod_labels=config.kube_pod_labels,
        to_close=[part for part in (allocations, workloads, api) if part],
    )


def _of_all_nodes(config: Config) -> Attribution:
    """Who holds what is on the pages: the kubelet and /proc of this node know nothing of the others."""
    api = machine.open_api_server(config)
    workloads = Workloads(api, name_labels=config.kube_workload_labels)
    return Attribution(
        interval=config.interval,
        pod_sources=[PodWatch(api, None)] if api else [],
        workloads=workloads,
        pod_labels=config.kube_pod_labels,
        to_close=[part for part in (workloads, api) if part],
    )


def _pod_sources(config: Config, api: Api | None) -> list[PodSource]:
    """Best first. A part that this machine has no sign of is left out, not shown as broken."""
    sources: list[PodSource] = []
    if machine.has_pods_api(config):
        sources.append(PodsApi(config.path_kubelet))
    if api:
        sources.append(PodWatch(api, machine.node_name(config)))
    if machine.has_pod_logs(config):
        sources.append(LogDirs(config.path_logs))
    return sources
