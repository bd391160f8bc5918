from argparse import ArgumentParser, Namespace

from podgpu.cli._commands import add_output
from podgpu.config import Config

HELP = "List every metric, its type, its meaning and its other names."
OPTIONS = ()


def arguments(parser: ArgumentParser) -> None:
    add_output(parser, ("text", "json"))


def run(_: Config, arguments: Namespace) -> int:
    from podgpu.catalog.reference import rows_as_json, rows_as_text

    print((rows_as_json() if arguments.output == "json" else rows_as_text()).rstrip())
    return 0
