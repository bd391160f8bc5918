import sys
import time
from argparse import ArgumentParser, Namespace
from functools import partial
from typing import TYPE_CHECKING

from podgpu.cli._commands import argument_type
from podgpu.cli._output import add_table_output, is_for_people, print_problems, print_sentences, print_table
from podgpu.cli._target.progress import show_store_progress
from podgpu.config import OPTIONS as ALL
from podgpu.config import Config, PriceOptions
from podgpu.errors import UserError
from podgpu.model.fit import FitTerms
from podgpu.option import STORE
from podgpu.option.times import period
from podgpu.option.value import seconds

if TYPE_CHECKING:
    from podgpu.cluster.fit.statement import FitEvidence
    from podgpu.insight.fit.statement import FitPeriodFacts

HELP = "Advise what workloads should hold: less, shared, none or more."
OPTIONS = ("config_file", "replay_file", *(name for name, option in ALL.items() if option.group == STORE))

WARNED = 1  # exit code
METRICS = "metrics"


def arguments(parser: ArgumentParser) -> None:
    times = "how long ago, such as 14d, or a date such as 2026-11-01"
    parser.add_argument("--from", dest="start", metavar="TIME", default="14d", help=f"{times}; default 14d")
    parser.add_argument("--to", dest="end", metavar="TIME", default="now", help="the same; default now")
    parser.add_argument("-n", "--namespace", metavar="NAMESPACE", help="only workloads of this namespace")
    parser.add_argument(
        "--headroom",
        metavar="PERCENT",
        type=argument_type(partial(_ratio, 0, 400)),
        default="20",
        help="memory beyond the most that was seen; default 20",
    )
    parser.add_argument(
        "--percentile",
        metavar="PERCENT",
        type=argument_type(partial(_ratio, 50, 100)),
        default="99",
        help="how many of the minutes must fit with their busy time; default 99",
    )
    parser.add_argument(
        "--release-after",
        metavar="DURATION",
        type=argument_type(_release_seconds),
        default="7d",
        help="what was not used for so long is to be released, at least 1d; default 7d",
    )
    parser.add_argument("--explain", action="store_true", help="also print why, and the lines of YAML to change")
    parser.add_argument(
        "--plan",
        metavar="LAYOUT",
        help="replay the time with cards that are divided in another way: mig, mig:1g.18gb,3g.71gb, timeslice:4, "
        "parts, cards:80 or cards:-20%%",
    )
    add_table_output(parser, METRICS)


def run(config: Config, arguments: Namespace) -> int:
    from podgpu.cluster.fit.statement import judged
    from podgpu.insight.fit.statement import FitPeriodFacts
    from podgpu.views.fit import explained, fit_heading, fit_page, fit_problems, fit_table, fit_terms

    start, end = period(arguments.start, arguments.end, time.time())
    asked = FitPeriodFacts(
        start=start,
        end=end,
        namespace=arguments.namespace,
        terms=FitTerms(
            headroom=arguments.headroom, percentile=arguments.percentile, release_seconds=arguments.release_after
        ),
        prices=config.of(PriceOptions).price,
    )
    if arguments.plan is not None:
        from podgpu.cli import _plan
        from podgpu.insight.plan.placing import layout_of

        if arguments.output == METRICS:
            raise UserError(f"-o {METRICS} is of the advice; leave out --plan, or give another format")
        layout = layout_of(arguments.plan)
        return _plan.print_plan(_read(config, asked, has_pools=True), layout, arguments)
    statement = judged(_read(config, asked))
    if arguments.output == METRICS:
        print(fit_page(statement).decode(), end="")
        return 0
    if is_for_people(arguments):
        is_text = arguments.output != "markdown"
        print(*fit_heading(statement), "", sep="\n" if is_text else "\n\n")
    print_table(fit_table(statement), arguments)
    if arguments.explain and is_for_people(arguments):
        print("", *explained(statement), sep="\n")
    elif arguments.output == "table" and sys.stdout.isatty():
        print_sentences((fit_terms(statement), "--explain says why, and what to change."), arguments)
    print_problems(fit_problems(statement))
    return WARNED if statement.notices or statement.unpriced else 0


def _release_seconds(text: str) -> float:
    release = seconds(text)
    if release < seconds("1d"):
        raise UserError(f"{text} is less than a day; give at least 1d")
    return release


def _ratio(least: int, most: int, text: str) -> float:
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not least <= percent <= most:
        raise UserError(f"{text!r} is not a percentage from {least} to {most}")
    return percent / 100


def _read(config: Config, asked: "FitPeriodFacts", *, has_pools: bool = False) -> "FitEvidence":
    """Read a recording if one is given, else the store. Raises UserError if neither answers."""
    from podgpu.cli._store import ask_store
    from podgpu.cluster.fit.statement import recorded_evidence, stored_evidence
    from podgpu.cluster.store.options import StoreOptions
    from podgpu.sources.replay.options import ReplayOptions

    recording = config.of(ReplayOptions).file
    if recording is not None:
        return recorded_evidence(recording, asked)
    if config.of(StoreOptions).url is None:
        raise UserError("give --prometheus.url=http://HOST:9090 for a store, or --replay.file=FILE for a recording")
    return ask_store(
        config, lambda store: stored_evidence(store, asked, time.time(), show_store_progress, has_pools=has_pools)
    )
