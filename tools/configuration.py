"""Writes docs/configuration.md from the options themselves."""

from typing import Any

from podgpu.config.sections import OPTIONS
from podgpu.option import Option

_PAGE = """\
# Configuration

<!-- Generated from the options themselves by `make docs`. Do not edit. -->

podgpu works without any configuration. Each option can be set in three ways. A flag wins over the
environment, the environment over the file, and the file over the default.

An empty environment variable or an empty key counts as not set. An option that may be repeated takes a list
in the file, and values joined by commas in the environment. A mistake is one line on stderr and exit code 2.
"""


def markdown() -> str:
    """Write docs/configuration.md."""
    groups = dict.fromkeys(option.group for option in OPTIONS.values())
    return "\n".join([_PAGE, *(_table(group) for group in groups), _example()])


def _table(group: str) -> str:
    rows = [
        f"| {_flags(option)} {_cell(option.placeholder)} | `{option.environment}` | {_key(option)}"
        f" | {_cell(option.default_text)} | {_cell(option.help)}{_was(option)} |"
        for option in OPTIONS.values()
        if option.group == group
    ]
    head = ["| flag | environment | file | default | meaning |", "|---|---|---|---|---|"]
    return "\n".join([f"## {group}", "", *head, *rows, ""])


def _flags(option: Option[Any]) -> str:
    return f"`{option.flag}` or `{option.alias}`" if option.alias else f"`{option.flag}`"


def _was(option: Option[Any]) -> str:
    return f" Was `{option.was}`, which still works." if option.was else ""


def _key(option: Option[Any]) -> str:
    return f"`{option.key}`" if option.in_file else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _example() -> str:
    """Write a file that sets every option to its default."""
    lines = [
        "## File",
        "",
        "This file sets every option that has a fixed default to that default.",
        "",
        "```yaml",
    ]
    sections: dict[str, list[str]] = {}
    for option in OPTIONS.values():
        if option.in_file and isinstance(option.default, str):
            parent, _, name = option.key.rpartition(".")
            value = f'["{option.default}"]' if option.repeatable else option.default
            sections.setdefault(parent, []).append(f"{'  ' if parent else ''}{name}: {value}")
    for parent, keys in sections.items():
        lines += [f"{parent}:", *keys] if parent else keys
    return "\n".join([*lines, "```", ""])
