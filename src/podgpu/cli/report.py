import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from podgpu.config import OPTIONS as ALL
from podgpu.config import Config
from podgpu.option import STORE

if TYPE_CHECKING:
    from podgpu.model import Statement

HELP = "Sum up who had how much of the GPUs between two times, from a Prometheus-compatible store."
OPTIONS = tuple(name for name, option in ALL.items() if option.group == STORE)

INCOMPLETE = 1


def arguments(parser: ArgumentParser) -> None:
    times = "how long ago, such as 7d or 12h, or a date such as 2026-11, 2026-11-01 or 2026-11-01T08:00+01:00"
    parser.add_argument("--from", dest="start", default="24h", metavar="TIME", help=f"{times}; default 24h")
    parser.add_argument("--to", dest="end", default="now", metavar="TIME", help="the same; default now")
    parser.add_argument(
        "--by",
        default="namespace",
        metavar="WHAT",
        help="namespace, the default, workload, pod, node, model, cluster, or a pod label such as team",
    )
    parser.add_argument("-n", "--namespace", metavar="NAMESPACE", help="this namespace alone")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FORM",
        choices=tuple(_FORMS),
        default="table",
        help="table, the default, csv, json or markdown",
    )
    parser.add_argument(
        "--no-headers", action="store_true", help="leave out the line with the names of columns"
    )


def run(config: Config, arguments: Namespace) -> int:
    import asyncio
    import time

    from podgpu.cli._period import period

    between = period(arguments.start, arguments.end, time.time())
    found = asyncio.run(_made(config, between, arguments))
    print(_FORMS[arguments.output](found, arguments), end="")
    for text in (
        *found.notices,
        *(f"no price for {model}; add it to the file of --price" for model in found.unpriced),
    ):
        print(text, file=sys.stderr)
    return INCOMPLETE if found.notices or found.unpriced else 0


async def _made(config: Config, between: tuple[float, float], arguments: Namespace) -> "Statement":
    from msgspec.structs import replace

    from podgpu.cluster.report.grouping import Grouping
    from podgpu.cluster.report.statement import statement
    from podgpu.cluster.store.client import Store
    from podgpu.cluster.store.fault import StoreFault
    from podgpu.cluster.store.options import Options
    from podgpu.config.price import PriceOptions
    from podgpu.errors import UserError

    store = Store(config.of(Options))
    prices = config.of(PriceOptions).price
    try:
        found = await statement(
            store, between, Grouping(arguments.by, arguments.namespace), prices=prices, progress=_progress()
        )
    except StoreFault as fault:
        raise UserError(f"{fault.reason}: {fault.detail}; docs/report.md says what to do") from None
    finally:
        await store.close()
    return replace(found, notices=tuple(f"{one.reason}: {one.detail}" for one in sorted(store.notices)))


def _progress() -> Callable[[float], None]:
    """Show a person how far it is; a program that reads our errors sees none of it."""
    if not sys.stderr.isatty():
        return lambda _: None

    def show(part: float) -> None:
        end = "\r\x1b[K" if part >= 1 else ""
        print(f"\r\x1b[Kreading the store: {part:.0%}{end}", end="", file=sys.stderr, flush=True)

    return show


def _table(found: "Statement", arguments: Namespace) -> str:
    from podgpu.views.cluster.statement import footer, table

    width = shutil.get_terminal_size().columns
    notes = footer(found) if sys.stdout.isatty() and not arguments.no_headers else ""
    return table(found, width, headers=not arguments.no_headers) + (f"\n{notes}" if notes else "")


def _csv(found: "Statement", arguments: Namespace) -> str:
    from podgpu.views.cluster.statement import as_csv

    return as_csv(found, headers=not arguments.no_headers)


def _json(found: "Statement", _: Namespace) -> str:
    from podgpu.views.cluster.statement import as_json

    return as_json(found)


def _markdown(found: "Statement", _: Namespace) -> str:
    from podgpu.views.cluster.statement import markdown

    return markdown(found)


_FORMS = {"table": _table, "csv": _csv, "json": _json, "markdown": _markdown}
