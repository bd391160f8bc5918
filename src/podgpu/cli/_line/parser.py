"""Flags and help texts, derived from the options and the commands."""

from argparse import SUPPRESS, ArgumentParser, HelpFormatter, Namespace
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from podgpu.cli._line.command import Command, find, names
from podgpu.config import OPTIONS
from podgpu.errors import UserError
from podgpu.option import Option
from podgpu.option.spelling import did_you_mean

WIDTH = 80


class Arguments(NamedTuple):
    """The texts of the options by their Python names, and the command's own arguments."""

    flags: dict[str, Sequence[str]]
    own: Namespace


class _Formatter(HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32, width=WIDTH)

    def _split_lines(self, text: str, width: int) -> list[str]:
        """Wraps each line by itself, so that names and defaults stay below the sentence."""
        return [
            part for line in text.splitlines() for part in super(_Formatter, self)._split_lines(line, width)
        ]


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message.removeprefix('argument ')}; see {self.prog} --help")


def parse(program: str, command: Command, argv: Sequence[str]) -> Arguments:
    parser = built(program, command)
    own, unknown = parser.parse_known_args(argv)
    if unknown:
        raise UserError(_unknown(unknown[0], parser))
    values = vars(own)
    flags = {option.name: values.pop(option.name) for option in _spelled(command)}
    return Arguments({name: texts for name, texts in flags.items() if texts is not None}, own)


def overview(program: str) -> str:
    """List the commands."""
    commands = [find(name) for name in names()]
    column = max(len(command.name) for command in commands) + 4
    rows = [f"  {command.name:<{column}}{command.help}" for command in commands]
    return "\n".join(
        [
            f"usage: {program} COMMAND [options]",
            "",
            "Which pod uses which share of which GPU, and how do you know?",
            "",
            "commands:",
            *rows,
            "",
            f"{program} COMMAND --help lists the options of a command.",
            f"{program} --version prints the version.",
        ]
    )


def built(program: str, command: Command) -> ArgumentParser:
    parser = _Parser(
        prog=program,
        description=command.help,
        epilog="A flag wins over the environment, which wins over the file." if command.options else None,
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    command.arguments(parser)
    positionals = parser._get_positional_actions()  # noqa: SLF001 - nothing public lists them
    wanted = [str(one.metavar or one.dest) for one in positionals if one.help != SUPPRESS]
    parser.usage = " ".join([program, *wanted, "[options]"])
    _add_options(parser, {name: OPTIONS[name] for name in command.options})
    return parser


def _add_options(parser: ArgumentParser, options: dict[str, Option[Any]]) -> None:
    groups = dict.fromkeys(option.group for option in options.values())
    sections = {group: parser.add_argument_group(group.lower()) for group in groups}
    for name, option in options.items():
        flags = [option.flag, option.alias] if option.alias else [option.flag]
        sections[option.group].add_argument(
            *flags, dest=name, action="append", metavar=option.placeholder, help=_help(option)
        )
        if former := option.former:
            parser.add_argument(former.flag, dest=former.name, action="append", help=SUPPRESS)


def _spelled(command: Command) -> list[Option[Any]]:
    """List the options of a command, by their former names too."""
    present = [OPTIONS[name] for name in command.options]
    return [*present, *(option.former for option in present if option.former)]


def _help(option: Option[Any]) -> str:
    return f"{option.help}\n${option.environment}, default {option.default_text}".replace("%", "%%")


def _unknown(word: str, parser: ArgumentParser) -> str:
    if not word.startswith("-"):
        return f"{parser.prog} takes no argument {word!r}; see {parser.prog} --help"
    flag = word.partition("=")[0]
    known = [name for action in parser._actions for name in action.option_strings]  # noqa: SLF001
    return f"unknown option {flag}; {did_you_mean(flag, known, f'see {parser.prog} --help')}"
