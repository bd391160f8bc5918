import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from podgpu.config import OPTIONS as ALL
from podgpu.config import Config
from podgpu.option import STORE

if TYPE_CHECKING:
    from podgpu.model import Statement

HELP = "Sum up who had how much of the GPUs between two times."
OPTIONS = tuple(name for name, option in ALL.items() if option.group == STORE)

INCOMPLETE = 1
_DOCS = "docs/report.md says what to do"
_ADVICE = {
    "store_partial": "sums of half of the data would be wrong: ask again when the store is whole, or give --partial"
}


def arguments(parser: ArgumentParser) -> None:
    from podgpu.cli._output import add_table_output

    times = "how long ago, such as 7d or 12h, or a date such as 2026-11, 2026-11-01 or 2026-11-01T08:00+01:00"
    parser.add_argument("--from", dest="start", default="24h", metavar="TIME", help=f"{times}; default 24h")
    parser.add_argument("--to", dest="end", default="now", metavar="TIME", help="the same; default now")
    parser.add_argument(
        "--by",
        default="namespace",
        metavar="WHAT",
        help="namespace, the default, workload, pod, node, model, cluster, or a pod label such as team",
    )
    parser.add_argument("-n", "--namespace", metavar="NAMESPACE", help="only pods of this namespace")
    add_table_output(parser)
    parser.add_argument(
        "--partial",
        action="store_true",
        help="also report from a store that cannot read all of its data; the sums are wrong then",
    )


def run(config: Config, arguments: Namespace) -> int:
    import asyncio
    import time

    from podgpu.cli._output import print_problems, print_table
    from podgpu.cli._report_tables import report_notes, report_table
    from podgpu.cli._times import period

    between = period(arguments.start, arguments.end, time.time())
    found = asyncio.run(_statement(config, between, arguments))
    print_table(report_table(found, arguments), arguments)
    if arguments.output == "table" and sys.stdout.isatty() and not arguments.no_headers:
        print("", *report_notes(found), sep="\n")
    problems = [
        *found.notices,
        *(f"no price for {model}; add it to the file of --price" for model in found.unpriced),
    ]
    print_problems(problems)
    return INCOMPLETE if problems else 0


async def _statement(config: Config, between: tuple[float, float], arguments: Namespace) -> "Statement":
    from msgspec.structs import replace

    from podgpu.cluster.report.statement import Grouping, statement
    from podgpu.cluster.store.client import Store
    from podgpu.cluster.store.options import StoreOptions
    from podgpu.cluster.store.response import EMPTY, NOTHING, StoreFault
    from podgpu.config import PriceOptions
    from podgpu.errors import UserError

    store = Store(config.of(StoreOptions), whole=not arguments.partial)
    grouping = Grouping(arguments.by, arguments.namespace)
    try:
        found = await statement(
            store, between, grouping, prices=config.of(PriceOptions).price, progress=_show_progress
        )
    except StoreFault as fault:
        raise UserError(f"{fault.reason}: {fault.detail}; {_ADVICE.get(fault.reason, _DOCS)}") from None
    finally:
        await store.close()
    if not found.gpus:
        raise UserError(f"{EMPTY}: {NOTHING}, or choose another time")
    return replace(found, notices=tuple(f"{fault.reason}: {fault.detail}" for fault in sorted(store.notices)))


def _show_progress(part: float) -> None:
    from podgpu.cli._terminal import show_progress
    from podgpu.numbers import percent

    show_progress(f"reading the store: {percent(part)}" if part < 1 else "")
