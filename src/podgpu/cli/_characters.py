"""Which characters are written: any, or plain ones alone, where the locale has no others or the user wants none."""

import locale
import sys
from argparse import ArgumentParser, Namespace
from io import TextIOWrapper

FOR_PEOPLE = ("table", "wide", "markdown", "text")


def add_ascii(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--ascii", action="store_true", help="write plain characters only, as where the locale has no others"
    )


def choose_characters(arguments: Namespace) -> None:
    """Let everything that is for people be written in the characters that can be read. Data stays as it is."""
    if getattr(arguments, "output", "") in FOR_PEOPLE and (arguments.ascii or not _has_others()):
        from podgpu.views.plain import PLAIN

        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(encoding="ascii", errors=PLAIN)


def _has_others() -> bool:
    """Whether the locale has them. What Python takes for the encoding does not tell: it writes UTF-8 anyway."""
    return locale.nl_langinfo(locale.CODESET).upper().replace("-", "") == "UTF8"
