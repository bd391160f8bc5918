from __future__ import annotations

import os
import shutil
import sys
import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from podgpu.config import OPTIONS as ALL
from podgpu.config import Config, Terminal
from podgpu.option import WEB

if TYPE_CHECKING:
    from podgpu.doctor import Machine
    from podgpu.model import Snapshot

HELP = "Check this node, or a running agent, and say what to do."
OPTIONS = tuple(name for name, option in ALL.items() if option.group != WEB and not name.startswith("log_"))

FAILED = 1
CYCLES = 3  # counters need two readings to move, and the driver may still be starting at the first
BETWEEN_READINGS = 0.5


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        metavar="FORM",
        choices=("table", "json"),
        default="table",
        help="table, the default, or json",
    )


def run(config: Config, arguments: Namespace) -> int:
    from podgpu import log
    from podgpu.doctor import Status, examine, sheet

    # Problems are printed below, in words for a terminal.
    log.configure("error", config.log_format)
    snapshot, machine = _here(config) if config.of(Terminal).url is None else _elsewhere(config)
    findings = examine(snapshot, machine)
    if arguments.output == "json":
        print(sheet.json(snapshot, findings), end="")
    else:
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        print(sheet.text(snapshot, findings, shutil.get_terminal_size().columns, colour=colour), end="")
    return FAILED if any(one.status is Status.FAIL for one in findings) else 0


def _here(config: Config) -> tuple[Snapshot, Machine]:
    import asyncio

    from podgpu.assembly import machine
    from podgpu.cli._reading import read_node
    from podgpu.doctor import Machine
    from podgpu.views.dialects.dcgm import Options, unavailable

    counters = config.of(Options).collectors
    snapshot = asyncio.run(read_node(config, cycles=CYCLES, pause=BETWEEN_READINGS))
    return snapshot, Machine(
        now=time.time(),
        kubelet=str(config.path_kubelet),
        kube_api=config.kube_api,
        in_pod=machine.is_in_pod(),
        hides_processes=machine.hides_processes(config),
        clock_synchronised=machine.is_clock_synchronised(),
        missing_fields=unavailable(counters) if counters else None,
    )


def _elsewhere(config: Config) -> tuple[Snapshot, Machine]:
    from podgpu.cli._view import open_view
    from podgpu.doctor import Machine

    view = open_view(config)
    try:
        return view.full(view.cluster.nodes[0].name), Machine(now=time.time(), is_remote=True)
    finally:
        view.close()
