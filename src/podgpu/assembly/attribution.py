"""Chooses the parts that find out who uses a GPU, by the source, the configuration and this machine."""

from functools import partial

from podgpu import sharing
from podgpu.agent.attribution import Attribution
from podgpu.agent.lookout import Lookout
from podgpu.agent.lookout.processor_time import ProcessorTime
from podgpu.assembly import machine
from podgpu.assembly.source import chosen
from podgpu.config import Config
from podgpu.host.outsiders import Outsiders
from podgpu.host.processor_time import processor_time_us
from podgpu.host.procfs import Procfs
from podgpu.host.recent import RecentProcesses
from podgpu.kube.api import Api
from podgpu.kube.log_dirs import LogDirs
from podgpu.kube.pod_watch import PodWatch
from podgpu.kube.podresources import PodResources
from podgpu.kube.pods_api import PodsApi
from podgpu.kube.resource_claims import ResourceClaims
from podgpu.kube.workloads import Workloads
from podgpu.model.ports import NodeSources, PodSource
from podgpu.sharing.inventory import Host
from podgpu.sources.switches.watcher import Watcher


def open_attribution(config: Config, *, spread: float = 0.0) -> Attribution:
    """An agent among many spreads its questions about owners over so many seconds."""
    residents = chosen(config).residents
    if residents:
        return _brought_along(config, residents())
    return _of_this_machine(config, spread)


def misses_kubelet(config: Config) -> bool:
    """Whether the kubelet should say which container was given which device, and cannot be asked."""
    source = chosen(config)
    return not (source.residents or source.names_holders or machine.has_kubelet(config))


def _brought_along(config: Config, residents: NodeSources) -> Attribution:
    return Attribution(
        interval=config.interval,
        allocations=residents.allocations,
        pod_sources=[residents.pods],
        processes=residents.processes,
        workloads=residents.workloads,
        pod_labels=config.kube_pod_labels,
        lookout=Lookout(residents.switches, always=False),
    )


def _of_this_machine(config: Config, spread: float) -> Attribution:
    processes, root = Procfs(machine.procfs(config)), machine.root(config)
    has_kubelet = machine.has_kubelet(config)
    api = machine.open_api_server(config)
    allocations = PodResources(config.path_kubelet) if has_kubelet else None
    nearest = config.kube_workload_owner == "nearest"
    workloads = Workloads(api, name_labels=config.kube_workload_labels, nearest=nearest, spread=spread)
    sees_processes = chosen(config).sees_processes
    # A pod that cannot see the kubelet's folder still runs in a cluster.
    books_outsiders = not has_kubelet and api is None
    return Attribution(
        interval=config.interval,
        allocations=allocations,
        dynamics=ResourceClaims(api, machine.node_name(config)) if api else None,
        pod_sources=_pod_sources(config, api),
        # If the source lists no processes, there are none to look up.
        processes=processes if sees_processes else None,
        recent=RecentProcesses(processes, interval=config.interval, only_pods=not books_outsiders)
        if sees_processes
        else None,
        outsiders=Outsiders(root),
        books_outsiders=books_outsiders,
        host=Host(root=root, pod_uid=processes.pod_uid),
        ratios=machine.ratios(config),
        namespaces=config.sharing_namespaces,
        state=config.path_state,
        workloads=workloads,
        pod_labels=config.kube_pod_labels,
        lookout=_lookout(config),
        processor_time=ProcessorTime(partial(processor_time_us, machine.procfs(config))),
        to_close=[part for part in (allocations, workloads, api) if part],
    )


def _lookout(config: Config) -> Lookout | None:
    if config.switches == "off":
        return None
    return Lookout(Watcher(), always=config.switches == "on", checks_only=config.switches == "check")


def _pod_sources(config: Config, api: Api | None) -> list[PodSource]:
    """List the best first. A part that this machine does not have is left out rather than shown as broken."""
    sources: list[PodSource] = []
    notes = sharing.notes_of(sharing.systems())
    if machine.has_pods_api(config):
        sources.append(PodsApi(config.path_kubelet, notes=notes))
    if api:
        sources.append(PodWatch(api, machine.node_name(config), notes=notes))
    if machine.has_pod_logs(config):
        sources.append(LogDirs(config.path_logs))
    return sources
