"""Whose GPU it is, from the parts that the configuration and this machine offer."""

from podgpu.agent.attribution import Attribution
from podgpu.assembly.api_server import open_api_server
from podgpu.config import Config
from podgpu.host.outsiders import Outsiders
from podgpu.host.procfs import Procfs
from podgpu.kube import PodSource
from podgpu.kube.apiserver import ApiServer
from podgpu.kube.log_dirs import LogDirs
from podgpu.kube.pod_watch import PodWatch
from podgpu.kube.podresources import PodResources
from podgpu.kube.pods_api import PodsApi
from podgpu.kube.resource_claims import ResourceClaims
from podgpu.kube.workloads import Workloads
from podgpu.sharing.inventory import Host

MANY_CARDS = 16_384  # of a cluster


def open_attribution(config: Config) -> Attribution:
    if config.source == "simulator":
        from podgpu.agent.demo import demo_attribution

        return demo_attribution(config.interval, config.kube_pod_labels)
    api = open_api_server(config)
    if of_all_nodes(config):
        return _of_all_nodes(config, api)
    allocations = PodResources(config.path_kubelet) if has_kubelet(config) else None
    processes = Procfs(config.path_procfs)
    workloads = Workloads(api, name_labels=config.kube_workload_labels)
    return Attribution(
        interval=config.interval,
        allocations=allocations,
        dynamics=ResourceClaims(api, config.node_name) if api else None,
        pod_sources=_pod_sources(config, api),
        processes=processes,
        outsiders=Outsiders(config.path_root),
        # A pod that cannot see the kubelet's folder is no bare machine.
        books_outsiders=not has_kubelet(config) and api is None,
        host=Host(root=config.path_root, pod_uid=processes.pod_uid),
        ratios=config.sharing_ratio_file or (),
        workloads=workloads,
        pod_labels=config.kube_pod_labels,
        to_close=[part for part in (allocations, workloads, api) if part],
    )


def of_all_nodes(config: Config) -> bool:
    return config.source == "dcgm" and config.dcgm_nodes == "all"


def _of_all_nodes(config: Config, api: ApiServer | None) -> Attribution:
    """Who holds what is on the pages: the kubelet and /proc of this node know nothing of the others."""
    workloads = Workloads(api, name_labels=config.kube_workload_labels)
    return Attribution(
        interval=config.interval,
        pod_sources=[PodWatch(api, None)] if api else [],
        workloads=workloads,
        pod_labels=config.kube_pod_labels,
        to_close=[part for part in (workloads, api) if part],
        most_cards=MANY_CARDS,
    )


def has_kubelet(config: Config) -> bool:
    return config.path_kubelet.is_dir()


def _pod_sources(config: Config, api: ApiServer | None) -> list[PodSource]:
    """Best first. A part that this machine has no sign of is left out, not shown as broken."""
    sources: list[PodSource] = []
    if (config.path_kubelet / "pods-api").is_dir():
        sources.append(PodsApi(config.path_kubelet))
    if api:
        sources.append(PodWatch(api, config.node_name))
    if (config.path_logs / "pods").is_dir():
        sources.append(LogDirs(config.path_logs))
    return sources
