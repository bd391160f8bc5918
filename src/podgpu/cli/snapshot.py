import os
import shutil
import sys
import time
from argparse import ArgumentParser, Namespace

from podgpu.config import OPTIONS as ALL
from podgpu.config import WEB, Config
from podgpu.model import Snapshot

HELP = "Read this node's GPUs once and print what was found."
OPTIONS = tuple(name for name, option in ALL.items() if option.group != WEB and not name.startswith("log_"))

FAULTY = 1
BETWEEN_READINGS = 1.0  # energy and busy time take two readings to measure
# A driver that no process keeps loaded takes seconds for its first answer.
PATIENCE_SECONDS = 10.0
_MAY_PASS = frozenset({"starting", "hung", "sampler_stuck"})


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

    # What went wrong is told below, in words for a terminal.
    log.configure("error", config.log_format)
    snapshot = asyncio.run(_take(config))
    print(_FORMS[arguments.output](snapshot), end="")
    reasons = _reasons(snapshot)
    if arguments.output != "table":  # which tells them itself
        for reason in reasons:
            print(reason, file=sys.stderr)
    return FAULTY if reasons else 0


async def _take(config: Config) -> Snapshot:
    import asyncio

    from podgpu.agent.loop import Agent
    from podgpu.cli._attribution import open_attribution
    from podgpu.cli._source import open_source

    attribution = open_attribution(config)
    agent = Agent(
        open_source(config), node=config.node_name, interval=config.interval, attribution=attribution
    )
    watching = asyncio.create_task(attribution.run())
    until = time.monotonic() + PATIENCE_SECONDS
    try:
        await agent.cycle()
        while _may_pass(agent.snapshot()) and time.monotonic() < until:
            await asyncio.sleep(0.1)
            await agent.cycle()
        await asyncio.sleep(BETWEEN_READINGS)
        await agent.cycle()
        return agent.snapshot()
    finally:
        watching.cancel()
        await agent.close()


def _may_pass(snapshot: Snapshot) -> bool:
    return any(part.fault and part.fault.reason in _MAY_PASS for part in snapshot.parts)


def _reasons(snapshot: Snapshot) -> list[str]:
    from podgpu.views.advice import next_step
    from podgpu.views.glance import problem

    faults = [(part.name, part.fault) for part in snapshot.parts]
    faults += [(f"GPU {device.gpu.index}", device.fault) for device in snapshot.devices]
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
