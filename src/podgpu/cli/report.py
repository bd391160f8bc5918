import sys
import time
from argparse import ArgumentParser, Namespace

from podgpu.cli._commands import argument_type
from podgpu.cli._output import (
    FOR_PEOPLE,
    add_table_output,
    is_for_people,
    print_lines,
    print_problems,
    print_sentences,
    print_table,
)
from podgpu.config import OPTIONS as ALL
from podgpu.config import Config, PriceOptions
from podgpu.errors import UserError
from podgpu.option import STORE
from podgpu.option.times import CALENDAR
from podgpu.views.statement import heading, problems, report_json, report_notes, report_table

HELP = "Sum up who had how much of the GPUs between two times."
OPTIONS = ("config_file", *(name for name, option in ALL.items() if option.group == STORE))

WARNED, GAPS = 1, 3  # exit codes


def arguments(parser: ArgumentParser) -> None:
    from podgpu.cluster.report.bill import BASES, SHARES, basis_word, share_word

    _add_times(parser)
    parser.add_argument(
        "--by",
        default="namespace",
        metavar="WHAT",
        help="namespace, the default, workload, pod, node, model, cluster, or a pod label such as team",
    )
    parser.add_argument("-n", "--namespace", metavar="NAMESPACE", help="only pods of this namespace")
    parser.add_argument(
        "--basis",
        type=basis_word,
        choices=BASES,
        default="held",
        help="what is paid for: held time, the default, used time, the greater of both in each hour, or energy",
    )
    parser.add_argument(
        "--share",
        type=share_word,
        choices=SHARES,
        default="none",
        help="who pays for what nobody held or used: none, the default, keeps it in rows of its own; held shares it by "
        "held hours, even shares it evenly",
    )
    add_table_output(parser, "focus", "focus-parquet")
    parser.add_argument("--charge-period", choices=("hour", "day"), default="day", help="of FOCUS; default day")
    parser.add_argument(
        "--write-to",
        metavar="DIR",
        help="also write CSV, FOCUS and JSON to files in this folder, with the period in their names",
    )
    gaps = parser.add_mutually_exclusive_group()
    gaps.add_argument(
        "--allow-gaps",
        dest="min_coverage",
        action="store_const",
        const=0.0,
        default=1.0,
        help="exit with 0 even if some GPUs were not seen all the time",
    )
    gaps.add_argument(
        "--min-coverage",
        metavar="RATIO",
        type=argument_type(_ratio),
        default=1.0,
        help="exit with 0 if at least this much of the GPUs' time was seen, such as 0.99, and with 3 otherwise",
    )
    parser.add_argument(
        "--partial",
        action="store_true",
        help="also report from a store that cannot read all of its data; the sums are wrong then",
    )
    parser.add_argument(
        "--verify", metavar="FILE", help="make the report of this JSON file again, and say what differs"
    )


def _add_times(parser: ArgumentParser) -> None:
    times = "how long ago, such as 7d or 12h, or a date such as 2026-11, 2026-11-01 or 2026-11-01T08:00+01:00"
    parser.add_argument("--from", dest="start", metavar="TIME", help=f"{times}; default 24h")
    parser.add_argument("--to", dest="end", metavar="TIME", help="the same; default now")
    parser.add_argument(
        "--period",
        choices=tuple(CALENDAR),
        help="in place of both: the last month, week from Monday, or day that is over, in UTC",
    )


def _ratio(text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = -1.0
    if not 0 <= ratio <= 1:
        raise UserError(f"{text!r} is no ratio; give a number from 0 to 1, such as 0.99")
    return ratio


def run(config: Config, arguments: Namespace) -> int:
    from podgpu.cli import _bill, _focus
    from podgpu.cluster.report.bill import bill_request, with_period_notice

    now = time.time()
    if arguments.verify:
        return _verify(config, arguments, now)
    words = _bill.words(arguments, now)
    asked = bill_request(words, config.of(PriceOptions).price, now)
    if arguments.output in (_focus.FOCUS, _focus.PARQUET):
        _focus.check_focus(arguments.output, asked.prices)
    statement = with_period_notice(_bill.made(config, asked, arguments, now), words, now)
    if arguments.write_to:
        _bill.write_bill(statement, asked, arguments.write_to)
    if arguments.output == _focus.FOCUS:
        print(_focus.focus_csv(statement), end="")
    elif arguments.output == _focus.PARQUET:
        sys.stdout.buffer.write(_focus.focus_parquet(statement))
    else:
        if is_for_people(arguments):
            if arguments.output == "markdown":
                print(*heading(statement), sep="\n\n", end="\n\n")
            else:
                print_lines(heading(statement))
        table = report_table(
            statement,
            asked.document,
            has_total=arguments.output in FOR_PEOPLE,
            describes_rows=arguments.output == "csv",
        )
        print_table(table, arguments)
    if arguments.output == "table" and sys.stdout.isatty():
        print_sentences(report_notes(statement), arguments)
    print_problems(problems(statement))
    if statement.disputes or (statement.coverage.ratio or 0.0) < arguments.min_coverage:
        return GAPS
    return WARNED if statement.notices or statement.unpriced or statement.total.unsized_us else 0


def _verify(config: Config, arguments: Namespace, now: float) -> int:
    """Make an older report again, by what it says of itself, and print what differs."""
    from podgpu.cli import _bill

    arguments.output = "json"
    before = _bill.read_report(arguments.verify)
    statement = _bill.made(config, before.request, arguments, now)
    now_written = _bill.decoded_report(report_json(statement, before.request.document))
    different = _bill.differences(before, now_written)
    print_problems(different)
    print(f"{arguments.verify}: {'not ' if different else ''}the same as the store says now")
    return WARNED if different else 0
