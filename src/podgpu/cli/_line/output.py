"""The flag that says how to print."""

from argparse import ArgumentParser
from collections.abc import Sequence


def add_output(parser: ArgumentParser, forms: Sequence[str]) -> None:
    """`forms` are two or more; the first is the default."""
    first, *more, last = forms
    others = f"{', '.join(more)} or {last}" if more else f"or {last}"
    parser.add_argument(
        "-o",
        "--output",
        metavar="FORM",
        choices=tuple(forms),
        default=first,
        help=f"{first}, the default, {others}",
    )
