"""A command is one file beside this one. Files with a leading underscore, and main, are none."""

import pkgutil
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib import import_module

import podgpu.cli
from podgpu.config import OPTIONS, Config


@dataclass(frozen=True, slots=True)
class Command:
    """What a command's file holds: HELP and `run`, and if it wants to, `arguments` and OPTIONS.

    `arguments(parser)` adds what only this command takes. OPTIONS names the options that it offers as
    flags, by their names in Python; without it that is all of them.
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
        getattr(module, "OPTIONS", tuple(OPTIONS)),
    )
