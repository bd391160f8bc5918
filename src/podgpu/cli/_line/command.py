"""Finds the commands. Each is a module of podgpu.cli, except main and those with a leading underscore."""

import pkgutil
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib import import_module

import podgpu.cli
from podgpu.config import OPTIONS, Config
from podgpu.option import NOT_AN_AGENTS

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


def names() -> list[str]:
    found = (module.name for module in pkgutil.iter_modules(podgpu.cli.__path__))
    return [name.replace("_", "-") for name in found if name != "main" and not name.startswith("_")]


def find(name: str) -> Command:
    module = import_module(f"podgpu.cli.{name.replace('-', '_')}")
    return Command(
        name,
        module.HELP,
        module.run,
        getattr(module, "arguments", lambda _: None),
        getattr(module, "OPTIONS", SERVING),
    )
