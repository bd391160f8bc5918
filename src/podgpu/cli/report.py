import sys
from argparse import ArgumentParser, Namespace

from podgpu.config import OPTIONS as ALL
from podgpu.config import Config
from podgpu.option import STORE

HELP = "Sum up who had how much of the GPUs between two times."
OPTIONS = tuple(name for name, option in ALL.items() if option.group == STORE)

WARNED, GAPS = 1, 3  # exit codes


def arguments(parser: ArgumentParser) -> None:
    from podgpu.cli._output import add_table_output
    from podgpu.cluster.report.bill import BASES, SHARES, basis_word, share_word

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
    add_table_output(parser, "focus")
    parser.add_argument(
        "--charge-period", choices=("hour", "day"), default="day", help="of -o focus; default day"
    )
    parser.add_argument(
        "--allow-gaps", action="store_true", help="exit with 0 even if some GPUs were not seen all the time"
    )
    parser.add_argument(
        "--partial",
        action="store_true",
        help="also report from a store that cannot read all of its data; the sums are wrong then",
    )
    parser.add_argument(
        "--verify", metavar="FILE", help="make the report of this JSON file again, and say what differs"
    )


def run(config: Config, arguments: Namespace) -> int:
    import time

    from podgpu.cli import _bill
    from podgpu.cli._output import FOR_PEOPLE, print_problems, print_table
    from podgpu.cluster.report.bill import bill_request, with_period_notice
    from podgpu.config.sections import PriceOptions
    from podgpu.views.statement import heading, problems, report_notes, report_table

    now = time.time()
    if arguments.verify:
        return _verify(config, arguments, now)
    words = _bill.words(arguments)
    asked = bill_request(words, config.of(PriceOptions).price, now)
    found = with_period_notice(_bill.made(config, asked, arguments, now), words, now)
    if arguments.output == _bill.FOCUS:
        from podgpu.cli._focus import focus_csv

        print(focus_csv(found), end="")
    else:
        if arguments.output in ("table", "wide") and not arguments.no_headers:
            print(heading(found))
        table = report_table(
            found,
            asked.document,
            has_total=arguments.output in FOR_PEOPLE,
            describes_rows=arguments.output == "csv",
        )
        print_table(table, arguments)
    if arguments.output == "table" and sys.stdout.isatty() and not arguments.no_headers:
        print("", *report_notes(found), sep="\n")
    print_problems(problems(found))
    if found.coverage.unseen_us and not arguments.allow_gaps:
        return GAPS
    return WARNED if found.notices or found.unpriced else 0


def _verify(config: Config, arguments: Namespace, now: float) -> int:
    """Make an older report again, by what it says of itself, and print what differs."""
    from podgpu.cli import _bill
    from podgpu.cli._output import print_problems
    from podgpu.views.row_table import as_document
    from podgpu.views.statement import report_table

    arguments.output = "json"
    asked, before = _bill.again(arguments.verify)
    found = _bill.made(config, asked, arguments, now)
    different = _bill.differences(before, as_document(report_table(found, asked.document)))
    print_problems(different)
    print(f"{arguments.verify}: {'not ' if different else ''}the same as the store says now")
    return WARNED if different else 0
