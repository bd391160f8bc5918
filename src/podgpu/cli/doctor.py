from __future__ import annotations

import shutil
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from podgpu.cli._commands import add_output
from podgpu.cli._view import LOOKING, is_elsewhere
from podgpu.config import OPTIONS as ALL
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.option import WEB

if TYPE_CHECKING:
    from podgpu.cli._view import View
    from podgpu.doctor import Machine
    from podgpu.model import Cluster, Snapshot

    Examined = tuple[Snapshot, Machine]

HELP = "Check a node, an agent or a cluster, and say what to do."
OPTIONS = tuple(
    name
    for name, option in ALL.items()
    if name in LOOKING or (option.group != WEB and not name.startswith("log_"))
)

FAILED = 1
CYCLES = 3  # counters need two readings to move, and the driver may still be starting at the first
BETWEEN_READINGS = 0.5


def arguments(parser: ArgumentParser) -> None:
    add_output(parser, ("table", "json"))
    parser.add_argument("--node", metavar="NODE", help="of a cluster, only this node")
    parser.add_argument(
        "--bundle",
        metavar="FILE",
        help="also write an archive for a bug report, such as podgpu.tar.gz: the findings, the snapshots, the options "
        "without secrets, and versions",
    )
    parser.add_argument(
        "--scrub", action="store_true", help="replace the names in the archive's snapshots by others"
    )


def run(config: Config, arguments: Namespace) -> int:
    from podgpu import log

    # Problems are printed below, in words for a terminal.
    log.configure("error", config.log_format)
    if is_elsewhere(config):
        case = _elsewhere(config, arguments.node)
    elif arguments.node:
        raise UserError("--node is for a cluster; give its --url, or log in to the node")
    else:
        case = _here(config)
    print(case.json() if arguments.output == "json" else case.text(), end="")
    if arguments.bundle:
        from podgpu.cli._view.bundle import write

        shown = case.scrubbed() if arguments.scrub else case
        write(arguments.bundle, shown.cluster, shown.json(), config)
    return FAILED if case.has_failed else 0


class _Case:
    """Snapshots with everything in them, and what is wrong with them. `is_whole` if it is about a cluster too."""

    def __init__(self, cluster: Cluster, examined: Sequence[Examined], *, is_whole: bool = False) -> None:
        from podgpu.doctor import examine, examine_cluster

        full = {snapshot.node: snapshot for snapshot, _ in examined}
        nodes = tuple(replace(one, snapshot=full.get(one.name, one.snapshot)) for one in cluster.nodes)
        self.cluster = replace(cluster, nodes=nodes)
        self._examined = examined
        self._nodes = [(snapshot, examine(snapshot, machine)) for snapshot, machine in examined]
        self._whole = examine_cluster(cluster) if is_whole else None

    @property
    def has_failed(self) -> bool:
        from podgpu.doctor import Status

        found = [*(self._whole or ()), *(one for _, findings in self._nodes for one in findings)]
        return any(one.status is Status.FAIL for one in found)

    def scrubbed(self) -> _Case:
        from secrets import token_bytes

        from podgpu.views.cluster.scrub import Scrubber

        scrubber = Scrubber(token_bytes(16))
        examined = [(scrubber.scrubbed_node(snapshot), machine) for snapshot, machine in self._examined]
        return _Case(scrubber.scrubbed(self.cluster), examined, is_whole=self._whole is not None)

    def text(self) -> str:
        from podgpu.cli._form import has_colour
        from podgpu.doctor import rendering

        width, colour = shutil.get_terminal_size().columns, has_colour()
        if self._whole is None:
            ((snapshot, findings),) = self._nodes
            return rendering.text(snapshot, findings, width, colour=colour)
        nodes = {snapshot.node: findings for snapshot, findings in self._nodes}
        return rendering.cluster_text(self.cluster.name, self._whole, nodes, width, colour=colour)

    def json(self) -> str:
        from podgpu.doctor import rendering

        if self._whole is None:
            ((snapshot, findings),) = self._nodes
            return rendering.json(snapshot, findings)
        return rendering.cluster_json(self.cluster, self._whole, self._nodes)


def _here(config: Config) -> _Case:
    import asyncio

    from podgpu.assembly import machine
    from podgpu.cli._view.node import read_node
    from podgpu.doctor import Machine
    from podgpu.model import of_one
    from podgpu.views.dialects import PREFIX, dcgm, dcgm_4_9
    from podgpu.views.dialects._dcgm.counters import unavailable
    from podgpu.views.dialects._dcgm.options import DcgmPageOptions

    dialect = config.of(DcgmPageOptions)
    counters = dialect.collectors
    pages = {*dcgm.DIALECT.pages, *dcgm_4_9.DIALECT.pages}
    is_spoken = any(PREFIX + one.dialect in pages for one in config.web_listen_address)
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
    return _Case(of_one(snapshot), [(snapshot, facts)])


def _elsewhere(config: Config, node: str | None) -> _Case:
    from podgpu.cli._view import open_view

    view = open_view(config)
    try:
        cluster = view.cluster
        if node is not None or view.is_one_node:
            name = node if node is not None else cluster.nodes[0].name
            return _Case(cluster, [_examined(view, name)])
        names = [
            one.name for one in cluster.nodes if one.state in ("fresh", "stale") and one.origin == "agent"
        ]
        return _Case(cluster, _all(view, names), is_whole=True)
    finally:
        view.close()


def _all(view: View, names: list[str]) -> list[Examined]:
    """A node that does not answer now is judged by the checks of the cluster."""
    from podgpu.cli._view.progress import waiting
    from podgpu.numbers import count, integer

    found: list[Examined] = []
    with waiting(lambda: f"checking {integer(len(found) + 1)} of {count(len(names), 'node')}"):
        for name in names:
            with suppress(UserError):
                found.append(_examined(view, name))
    return found


def _examined(view: View, name: str) -> Examined:
    from podgpu.doctor import Machine

    snapshot = view.full(name)
    # The clock of a recording is that of its time.
    now = snapshot.taken_at if snapshot.replayed else time.time()
    return snapshot, Machine(now=now, is_remote=True)
