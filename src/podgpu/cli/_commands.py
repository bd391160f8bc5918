"""Finds the commands, and parses their flags. Each command is a module of podgpu.cli without a leading underscore."""

import pkgutil
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, HelpFormatter, Namespace
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from textwrap import wrap
from typing import Any, NoReturn, TypeVar

import podgpu.cli
from podgpu.cli._characters import add_ascii
from podgpu.config import OPTIONS, Config
from podgpu.errors import UserError
from podgpu.option import NOT_AN_AGENTS, Option
from podgpu.option.value import did_you_mean

T = TypeVar("T")
WIDTH = 80
SERVING = tuple(name for name, option in OPTIONS.items() if option.group not in NOT_AN_AGENTS)


@dataclass(frozen=True, slots=True)
class Command:
    """A command's file holds HELP and `run`, and may hold `arguments` and OPTIONS.

    `arguments(parser)` adds the command's own arguments. OPTIONS lists the Python names of the options that it offers
    as flags; without it, the command offers all that an agent can have.
    """

    name: str
    help: str
    run: Callable[[Config, Namespace], int]
    arguments: Callable[[ArgumentParser], None]
    options: Collection[str]


def command_names() -> list[str]:
    names = (module.name for module in pkgutil.iter_modules(podgpu.cli.__path__))
    return [name for name in names if name != "main" and not name.startswith("_")]


def find_command(name: str) -> Command:
    module = import_module(f"podgpu.cli.{name}")
    return Command(
        name,
        module.HELP,
        module.run,
        getattr(module, "arguments", lambda _: None),
        getattr(module, "OPTIONS", SERVING),
    )


class _Formatter(HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32, width=WIDTH)

    def _split_lines(self, text: str, width: int) -> list[str]:
        """Wrap each line by itself, so that names and defaults stay below the sentence, and no flag at its hyphens."""
        return [part for line in text.splitlines() for part in wrap(line, width, break_on_hyphens=False)]


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message.removeprefix('argument ')}; see {self.prog} --help")


def parse(program: str, command: Command, argv: Sequence[str]) -> tuple[dict[str, Sequence[str]], Namespace]:
    """Return the texts of the options by their Python names, and the command's own arguments."""
    parser = build_parser(program, command)
    own, unknown = parser.parse_known_args(argv)
    if unknown:
        raise UserError(_unknown(unknown[0], parser))
    values = vars(own)
    flags = {option.name: values.pop(option.name) for option in _spelled(command)}
    return {name: texts for name, texts in flags.items() if texts is not None}, own


def overview(program: str) -> str:
    """List the commands."""
    commands = [find_command(name) for name in command_names()]
    column = max(len(command.name) for command in commands) + 4
    rows = "\n".join(f"  {command.name:<{column}}{command.help}" for command in commands)
    return f"""\
usage: {program} COMMAND [options]

Which pod uses which share of which GPU, and how do you know?

commands:
{rows}

{program} COMMAND --help lists the options of a command.
{program} --version prints the version."""


def build_parser(program: str, command: Command) -> ArgumentParser:
    parser = _Parser(
        prog=program,
        description=command.help,
        epilog="A flag wins over the environment, which wins over the file." if command.options else None,
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    command.arguments(parser)
    positionals = parser._get_positional_actions()  # noqa: SLF001 - nothing public lists them
    wanted = [str(action.metavar or action.dest) for action in positionals if action.help != SUPPRESS]
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


def argument_type(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Return a `type` for argparse whose errors name the flag."""

    def parsed(text: str) -> T:
        try:
            return parse(text)
        except UserError as error:
            raise ArgumentTypeError(str(error)) from None

    return parsed


def add_output(parser: ArgumentParser, formats: Sequence[str]) -> None:
    """Add `-o` for two or more formats; the first is the default."""
    first, *more, last = formats
    others = f"{', '.join(more)} or {last}" if more else f"or {last}"
    parser.add_argument(
        "-o",
        "--output",
        metavar="FORMAT",
        choices=tuple(formats),
        default=first,
        help=f"{first}, the default, {others}",
    )
    add_ascii(parser)
