import time
from functools import partial

from msgspec.structs import replace

from podgpu import sharing
from podgpu.agent.attribution import Attribution
from podgpu.agent.loop import Agent, BackgroundPart
from podgpu.agent.playback import Playback
from podgpu.agent.switch_log import SwitchLogs
from podgpu.assembly import insight_settings, machine
from podgpu.assembly.api_server import open_api_server
from podgpu.assembly.source import EarlySource, source_entry
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.host.dmem import Dmem
from podgpu.host.owner_names import OwnerNames
from podgpu.host.procfs import Procfs
from podgpu.host.recent_processes import RecentProcesses
from podgpu.host.system_files import guest_cards
from podgpu.insight import InsightSettings, conclude, with_answers
from podgpu.kube.api import ApiServer
from podgpu.kube.log_dirs import LogDirs
from podgpu.kube.object_watch import PodWatch
from podgpu.kube.resource_claims import ResourceClaims
from podgpu.kube.workloads import SPREAD_SECONDS, Workloads
from podgpu.model import Snapshot
from podgpu.model.ports import PodSource
from podgpu.push.environment import destination
from podgpu.sharing.inventory import Host
from podgpu.sources.switches.access import may_read_log
from podgpu.sources.switches.watcher import SwitchWatcher


def open_agent(
    config: Config, attribution: Attribution | None = None, early: EarlySource | None = None
) -> Agent | Playback:
    """Open the agent. A caller that runs the attribution itself passes it in. A recording is played instead.

    `early` is the source, if it is open already.
    """
    if playback := open_playback(config):
        return playback
    attribution = attribution or open_attribution(config, spread=SPREAD_SECONDS)
    early = early or EarlySource(config)
    early.watched = attribution.watched
    source = early.source
    return Agent(
        source,
        node=machine.node_name(config),
        interval=config.interval,
        settings=insight_settings(config),
        attribution=attribution,
        address="" if source.demo else machine.address(),
        guests=tuple if source.demo else partial(guest_cards, machine.sysfs(config)),
        leaves_log=lambda driver: config.switches == "off" and not source.demo and may_read_log(driver),
    )


def open_playback(config: Config) -> Playback | None:
    """Return None unless the chosen source is a recording. If it has several nodes, --node-name chooses one."""
    play = source_entry(config).play
    if play is None:
        return None
    return Playback(play(config.of), partial(_recorded_node, config.node_name, insight_settings(config)))


def _recorded_node(wanted: str | None, settings: InsightSettings, document: bytes) -> Snapshot:
    from podgpu.views.cluster import json

    found = {node.name: node.snapshot for node in json.decode(document).nodes if node.snapshot}
    if wanted is None and len(found) == 1:
        (snapshot,) = found.values()
    elif wanted in found:
        snapshot = found[wanted]
    else:
        names = ", ".join(sorted(found)[:5]) or "none at this moment"
        raise UserError(f"the recording has these nodes: {names}; choose one with --node-name")
    judged = snapshot if snapshot.insight else conclude(snapshot, settings, has_books=False)
    return replace(with_answers(judged), replayed=True)


def open_attribution(config: Config, *, spread: float = 0.0) -> Attribution:
    """Agents of many nodes start at once, so each spreads its requests for owners over `spread` seconds."""
    if not (node_sources := source_entry(config).node_sources):
        return _attribution_on_machine(config, spread)
    sources = node_sources()
    return Attribution(
        interval=config.interval,
        allocations=sources.allocations,
        pod_sources=[sources.pods],
        processes=sources.processes,
        workloads=sources.workloads,
        pod_labels=config.kube_pod_labels,
        switch_logs=SwitchLogs(sources.switches, always=False),
    )


def misses_kubelet(config: Config) -> bool:
    """Whether only the kubelet could report allocations, and there is none."""
    source = source_entry(config)
    return not (source.node_sources or source.names_holders or machine.has_kubelet(config))


def _attribution_on_machine(config: Config, spread: float) -> Attribution:
    processes, root = Procfs(machine.procfs(config)), machine.root(config)
    has_kubelet = machine.has_kubelet(config)
    api = open_api_server(config)
    allocations = None
    if has_kubelet:
        from podgpu.kube.kubelet.podresources import PodResources  # gRPC is loaded only where there is a kubelet

        allocations = PodResources(config.path_kubelet)
    nearest = config.kube_workload_owner == "nearest"
    workloads = Workloads(api, name_labels=config.kube_workload_labels, nearest=nearest, spread=spread)
    sees_processes = source_entry(config).sees_processes
    # A pod that cannot see the kubelet's folder still runs in a cluster.
    books_outsiders = not has_kubelet and api is None
    return Attribution(
        interval=config.interval,
        allocations=allocations,
        dynamics=ResourceClaims(api, machine.node_name(config)) if api else None,
        pod_sources=pod_sources(config, api),
        # If the source lists no processes, there are none to look up.
        processes=processes if sees_processes else None,
        recent=RecentProcesses(processes, interval=config.interval, only_pods=not books_outsiders)
        if sees_processes
        else None,
        outsiders=OwnerNames(root),
        books_outsiders=books_outsiders,
        host=Host(root=root, pod_uid=processes.pod_uid),
        ratios=machine.ratios(config),
        namespaces=config.sharing_namespaces,
        state=config.path_state,
        workloads=workloads,
        pod_labels=config.kube_pod_labels,
        switch_logs=_switch_logs(config),
        charges=Dmem(machine.sysfs(config) / "fs/cgroup") if sees_processes else None,
        to_close=[part for part in (allocations, workloads, api) if part],
    )


def _switch_logs(config: Config) -> SwitchLogs | None:
    if config.switches == "off":
        return None
    return SwitchLogs(SwitchWatcher(), always=config.switches == "on", checks_only=config.switches == "check")


def pod_sources(config: Config, api: ApiServer | None) -> list[PodSource]:
    """List the best first. Leave out what this machine does not have, rather than show it as down."""
    sources: list[PodSource] = []
    notes = sharing.annotations()
    if machine.has_pods_api(config):
        from podgpu.kube.kubelet.pods_api import PodsApi  # as above

        sources.append(PodsApi(config.path_kubelet, annotations=notes))
    if api and config.kube_pods == "auto":
        sources.append(PodWatch(api, machine.node_name(config), annotations=notes))
    if machine.has_pod_logs(config):
        sources.append(LogDirs(config.path_logs))
    return sources


def open_push(config: Config, agent: Agent) -> BackgroundPart | None:
    to = destination(machine.environment())
    if to is None:
        return None
    if not machine.has_package("opentelemetry.proto"):
        raise UserError(
            "the environment asks for an OTLP push, which needs one more package; run pip install 'podgpu[otlp]', "
            "or set OTEL_METRICS_EXPORTER=none"
        )
    # Loaded only where there is a collector to push to: the client takes 12 MiB, the messages 2.
    from podgpu.push.loop import Push
    from podgpu.views.otlp import encode, rejection

    written = partial(encode, resource=to.resource, started_at=time.time(), series_limit=config.series_limit)
    return Push(agent, to, written, rejection)
