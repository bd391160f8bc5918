import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
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
    from podgpu.cli._form import add_output

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
    add_output(parser)
    parser.add_argument(
        "--partial",
        action="store_true",
        help="also report from a store that cannot read all of its data; the sums are wrong then",
    )


def run(config: Config, arguments: Namespace) -> int:
    import asyncio
    import time

    from podgpu.cli._form import show
    from podgpu.cli._report.period import period
    from podgpu.cli._report.sheet import notes, sheet

    between = period(arguments.start, arguments.end, time.time())
    found = asyncio.run(_made(config, between, arguments))
    show(sheet(found, arguments), arguments)
    if arguments.output == "table" and sys.stdout.isatty() and not arguments.no_headers:
        print("", *notes(found), sep="\n")
    wrong = [
        *found.notices,
        *(f"no price for {one}; add it to the file of --price" for one in found.unpriced),
    ]
    for text in wrong:
        print(f"! {text}", file=sys.stderr)
    return INCOMPLETE if wrong else 0


async def _made(config: Config, between: tuple[float, float], arguments: Namespace) -> "Statement":
    from msgspec.structs import replace

    from podgpu.cluster.report.grouping import Grouping
    from podgpu.cluster.report.statement import statement
    from podgpu.cluster.store.client import Store
    from podgpu.cluster.store.fault import EMPTY, NOTHING, StoreFault
    from podgpu.cluster.store.options import StoreOptions
    from podgpu.config.price import PriceOptions
    from podgpu.errors import UserError

    store = Store(config.of(StoreOptions), whole=not arguments.partial)
    grouping = Grouping(arguments.by, arguments.namespace)
    try:
        found = await statement(
            store, between, grouping, prices=config.of(PriceOptions).price, progress=_progress()
        )
    except StoreFault as fault:
        raise UserError(f"{fault.reason}: {fault.detail}; {_ADVICE.get(fault.reason, _DOCS)}") from None
    finally:
        await store.close()
    if not found.gpus:
        raise UserError(f"{EMPTY}: {NOTHING}, or choose another time")
    return replace(found, notices=tuple(f"{one.reason}: {one.detail}" for one in sorted(store.notices)))


def _progress() -> Callable[[float], None]:
    """Show a person how far it is. Nobody else sees any of it."""
    if not sys.stderr.isatty():
        return lambda _: None

    def show(part: float) -> None:
        from podgpu.numbers import percent

        text = f"reading the store: {percent(part)}" if part < 1 else ""
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    return show
