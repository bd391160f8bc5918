import sys
from argparse import ArgumentParser, Namespace

from podgpu.cli._commands import add_output
from podgpu.cli._target import TARGET_OPTIONS, check_node, has_target, open_target
from podgpu.config import OPTIONS as ALL
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.model import Snapshot
from podgpu.numbers import count
from podgpu.option import DIALECTS, STORE, WEB

HELP = "Read the GPUs of a node once and print what was found."
OPTIONS = tuple(
    name
    for name, option in ALL.items()
    if name in TARGET_OPTIONS or (option.group not in (WEB, DIALECTS, STORE) and not name.startswith("log_"))
)

FAULTY = 1
UNREAD = ("gpu_unreadable", "part_down", "part_degraded")
BETWEEN_READINGS = 1.0  # seconds; measuring energy and busy time takes two readings


def arguments(parser: ArgumentParser) -> None:
    add_output(parser, tuple(_FORMATS))
    parser.add_argument("--node", metavar="NODE", default="", help="of a cluster, this node")


def run(config: Config, arguments: Namespace) -> int:
    from podgpu import log

    # Problems are printed below, in words for a terminal.
    log.configure("error", config.log_format)
    if has_target(config):
        snapshot = _from_target(config, arguments.node)
    elif arguments.node:
        raise UserError("--node is for a cluster; give its --url, or log in to the node")
    else:
        snapshot = _from_machine(config)
    print(_FORMATS[arguments.output](snapshot), end="")
    reasons = _reasons(snapshot)
    if arguments.output != "table":  # the table shows them itself
        for reason in reasons:
            print(reason, file=sys.stderr)
    return FAULTY if reasons else 0


def _from_machine(config: Config) -> Snapshot:
    import asyncio

    from podgpu.cli._node_reading import read_node

    return asyncio.run(read_node(config, cycles=2, pause=BETWEEN_READINGS))


def _from_target(config: Config, node: str) -> Snapshot:
    with open_target(config) as target:
        check_node(target.cluster, node)
        names = [node] if node else [known.name for known in target.cluster.nodes]
        if len(names) > 1:
            raise UserError(
                f"there are {count(len(names), 'node')}; choose one with --node, `podgpu top nodes` lists them"
            )
        if not names:
            raise UserError("no node has GPUs; `podgpu top` says what could not be read")
        return target.full(names[0])


def _reasons(snapshot: Snapshot) -> list[str]:
    """Say what could not be read. What is wrong with a card that can be read is in the snapshot."""
    from podgpu.views.format import problem_line

    problems = snapshot.insight.problems if snapshot.insight else ()
    return [problem_line(problem, with_node=False) for problem in problems if problem.kind in UNREAD]


def _json(snapshot: Snapshot) -> str:
    from podgpu.views.json import encode

    return encode(snapshot).decode() + "\n"


def _prom(snapshot: Snapshot) -> str:
    from podgpu.views.exposition import Format, render
    from podgpu.views.native import families

    return render(families(snapshot, {}), Format.TEXT).decode()


def _table(snapshot: Snapshot) -> str:
    from podgpu.cli._terminal import columns, has_colour
    from podgpu.views.table import table

    return table(snapshot, columns(), colour=has_colour())


_FORMATS = {"table": _table, "json": _json, "prom": _prom}
