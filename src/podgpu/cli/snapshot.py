import os
import shutil
import sys
from argparse import ArgumentParser, Namespace

from podgpu.config import OPTIONS as ALL
from podgpu.config import Config
from podgpu.model import Snapshot
from podgpu.option import CLUSTER, DIALECTS, TERMINAL, WEB

HELP = "Read this node's GPUs once and print what was found."
OPTIONS = tuple(
    name
    for name, option in ALL.items()
    if option.group not in (WEB, DIALECTS, CLUSTER, TERMINAL) and not name.startswith("log_")
)

FAULTY = 1
BETWEEN_READINGS = 1.0  # seconds; measuring energy and busy time takes two readings


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        metavar="FORM",
        choices=tuple(_FORMS),
        default="table",
        help="table, the default, json or prom",
    )


def run(config: Config, arguments: Namespace) -> int:
    import asyncio

    from podgpu import log
    from podgpu.cli._reading import read_node

    # Problems are printed below, in words for a terminal.
    log.configure("error", config.log_format)
    snapshot = asyncio.run(read_node(config, cycles=2, pause=BETWEEN_READINGS))
    print(_FORMS[arguments.output](snapshot), end="")
    reasons = _reasons(snapshot)
    if arguments.output != "table":  # the table shows them itself
        for reason in reasons:
            print(reason, file=sys.stderr)
    return FAULTY if reasons else 0


def _reasons(snapshot: Snapshot) -> list[str]:
    from podgpu.views.advice import next_step
    from podgpu.views.glance import problem

    faults = [(part.name, part.fault) for part in snapshot.parts]
    faults += [(f"GPU {card.gpu.index}", card.fault) for card in snapshot.cards]
    return [f"{name}: {problem(fault)}. {next_step(fault, name)}" for name, fault in faults if fault]


def _json(snapshot: Snapshot) -> str:
    from podgpu.views.json import encode

    return encode(snapshot).decode() + "\n"


def _prom(snapshot: Snapshot) -> str:
    from podgpu.views.exposition import Format, render
    from podgpu.views.native import families

    return render(families(snapshot, {}), Format.TEXT).decode()


def _table(snapshot: Snapshot) -> str:
    from podgpu.views.table import table

    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return table(snapshot, shutil.get_terminal_size().columns, colour=colour)


_FORMS = {"table": _table, "json": _json, "prom": _prom}
