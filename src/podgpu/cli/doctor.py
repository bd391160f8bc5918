import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import suppress
from itertools import chain

from msgspec.structs import replace

from podgpu import log
from podgpu.cli._commands import add_output
from podgpu.cli._target import TARGET_OPTIONS, Target, check_node, has_target, open_target
from podgpu.cli._target.progress import waiting
from podgpu.cli._terminal import columns, has_colour
from podgpu.config import OPTIONS as ALL
from podgpu.config import Config
from podgpu.doctor import Machine, Status, examine, examine_cluster, rendering
from podgpu.errors import UserError
from podgpu.model import Cluster, Snapshot, of_one
from podgpu.numbers import count, integer
from podgpu.option import WEB

HELP = "Check a node, an agent or a cluster, and say what to do."
OPTIONS = tuple(
    name
    for name, option in ALL.items()
    if name in TARGET_OPTIONS or (option.group != WEB and not name.startswith("log_"))
)

FAILED = 1
CYCLES = 3  # counters need two readings to move, and the driver may still be starting at the first
BETWEEN_READINGS = 0.5

Examined = tuple[Snapshot, Machine]


def arguments(parser: ArgumentParser) -> None:
    add_output(parser, ("table", "json"))
    parser.add_argument("--node", metavar="NODE", default="", help="of a cluster, only this node")
    parser.add_argument(
        "--bundle",
        metavar="FILE",
        help="also write an archive for a bug report, such as podgpu.tar.gz: the findings, the snapshots, the options "
        "without secrets, and versions",
    )
    parser.add_argument("--scrub", action="store_true", help="replace the names in the archive's snapshots by others")


def run(config: Config, arguments: Namespace) -> int:
    # Problems are printed below, in words for a terminal.
    log.configure("error", config.log_format)
    if has_target(config):
        with open_target(config) as target:
            examination = _target_examination(target, arguments.node)
    elif arguments.node:
        raise UserError("--node is for a cluster; give its --url, or log in to the node")
    else:
        examination = _machine_examination(config)
    print(examination.json() if arguments.output == "json" else examination.text(), end="")
    if arguments.bundle:
        from podgpu.cli._bundle import write_bundle

        shown = examination.scrubbed() if arguments.scrub else examination
        write_bundle(arguments.bundle, shown.cluster, shown.json(), config)
    return FAILED if examination.has_failed else 0


class Examination:
    """Snapshots by the names of their nodes, and what is wrong with them; with `of_cluster`, the cluster's too."""

    def __init__(self, cluster: Cluster, examined: Mapping[str, Examined], *, of_cluster: bool = False) -> None:
        nodes = [
            replace(node, snapshot=examined[node.name][0]) if node.name in examined else node for node in cluster.nodes
        ]
        self.cluster = replace(cluster, nodes=tuple(nodes))
        self._examined = examined
        self._node_findings = {
            name: (snapshot, examine(snapshot, machine)) for name, (snapshot, machine) in examined.items()
        }
        self._cluster_findings = examine_cluster(cluster) if of_cluster else None

    @property
    def has_failed(self) -> bool:
        findings = chain(self._cluster_findings or (), *(findings for _, findings in self._node_findings.values()))
        return any(finding.status is Status.FAIL for finding in findings)

    def scrubbed(self) -> "Examination":
        from secrets import token_bytes

        from podgpu.views.cluster.scrub import Scrubber

        scrubber = Scrubber(token_bytes(16))
        cluster = scrubber.scrubbed(self.cluster)
        examined = {
            new.name: (scrubber.scrubbed_node(self._examined[old.name][0]), self._examined[old.name][1])
            for old, new in zip(self.cluster.nodes, cluster.nodes, strict=True)
            if old.name in self._examined
        }
        return Examination(cluster, examined, of_cluster=self._cluster_findings is not None)

    def text(self) -> str:
        width, colour = columns(), has_colour()
        if self._cluster_findings is None:
            ((snapshot, findings),) = self._node_findings.values()
            return rendering.text(snapshot, findings, width, colour=colour)
        nodes = {name: findings for name, (_, findings) in self._node_findings.items()}
        return rendering.cluster_text(self.cluster.name, self._cluster_findings, nodes, width, colour=colour)

    def json(self) -> str:
        if self._cluster_findings is None:
            ((snapshot, findings),) = self._node_findings.values()
            return rendering.json(snapshot, findings)
        return rendering.cluster_json(self.cluster, self._cluster_findings, self._node_findings)


def _machine_examination(config: Config) -> Examination:
    import asyncio

    from podgpu.assembly import machine
    from podgpu.cli._node_reading import read_node
    from podgpu.views.dialects import PREFIX, dcgm, dcgm_4_9
    from podgpu.views.dialects._dcgm.counters import DcgmPageOptions, unavailable

    dialect = config.of(DcgmPageOptions)
    counters = dialect.collectors
    pages = {*dcgm.DIALECT.pages, *dcgm_4_9.DIALECT.pages}
    is_spoken = any(PREFIX + address.dialect in pages for address in config.web_listen_address)
    snapshot = asyncio.run(read_node(config, cycles=CYCLES, pause=BETWEEN_READINGS))
    facts = Machine(
        now=time.time(),
        kubelet=str(config.path_kubelet),
        kube_api=config.kube_api,
        in_pod=machine.is_in_pod(),
        hides_processes=machine.hides_processes(config),
        clock_synchronised=machine.is_clock_synchronised(),
        missing_fields=unavailable(counters) if counters else None,
        splits_shared=dialect.per_container == "on" if is_spoken else None,
    )
    return Examination(of_one(snapshot), {snapshot.node: (snapshot, facts)})


def _target_examination(target: Target, node: str) -> Examination:
    cluster = target.cluster
    check_node(cluster, node)
    if node or target.is_one_node:
        name = node or cluster.nodes[0].name
        return Examination(cluster, {name: _examined(target, name)})
    names = [node.name for node in cluster.nodes if node.state in ("fresh", "stale") and node.origin == "agent"]
    return Examination(cluster, _all_examined(target, names), of_cluster=True)


def _all_examined(target: Target, names: list[str]) -> dict[str, Examined]:
    """Leave out a node that does not answer now: the checks of the cluster judge it."""
    examined: dict[str, Examined] = {}
    with waiting(lambda: f"checking {integer(len(examined) + 1)} of {count(len(names), 'node')}"):
        for name in names:
            with suppress(UserError):
                examined[name] = _examined(target, name)
    return examined


def _examined(target: Target, name: str) -> Examined:
    snapshot = target.full(name)
    # A recording is judged by the clock of its time.
    now = snapshot.taken_at if snapshot.replayed else time.time()
    return snapshot, Machine(now=now, is_remote=True)
