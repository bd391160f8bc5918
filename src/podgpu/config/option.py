"""An option is declared once, as a dataclass field. Every name of it derives from the flag."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, TypeVar, cast

from podgpu.config.value import OneOf
from podgpu.errors import UserError

GENERAL, SOURCE, KUBERNETES = "General", "Source", "Kubernetes"
WEB, DIALECTS, LOG = "Web", "Dialects", "Log"
GROUPS = (GENERAL, SOURCE, KUBERNETES, WEB, DIALECTS, LOG)

T = TypeVar("T")
Environ = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Option(Generic[T]):
    """`default` is text as a user would write it; `default_note` says in words what text cannot.

    `in_file` is false for what the configuration file cannot set.
    """

    flag: str
    group: str
    help: str
    parse: Callable[[str], T]
    value_name: str = ""
    default: str | Callable[[Environ], str | None] | None = None
    default_note: str = ""
    repeatable: bool = False
    in_file: bool = True

    @property
    def key(self) -> str:
        """The path of its key in the file, joined by dots."""
        return self.flag.removeprefix("--")

    @property
    def environment(self) -> str:
        return "PODGPU_" + self.key.replace(".", "_").replace("-", "_").upper()

    @property
    def choices(self) -> tuple[str, ...]:
        return self.parse.choices if isinstance(self.parse, OneOf) else ()

    @property
    def placeholder(self) -> str:
        return self.value_name or "|".join(self.choices)

    @property
    def default_text(self) -> str:
        return self.default_note or (self.default if isinstance(self.default, str) else "")

    def value(self, texts: Sequence[str]) -> T | tuple[T, ...]:
        """Parse the texts. The last one counts, unless the option may be repeated."""
        parts = [part.strip() for text in texts for part in (text.split(",") if self.repeatable else [text])]
        if not all(parts):
            raise UserError("the value is empty; give one or leave the option out")
        return tuple(self.parse(part) for part in parts) if self.repeatable else self.parse(parts[-1])

    def default_value(self, environ: Environ) -> T | tuple[T, ...] | None:
        text = self.default(environ) if callable(self.default) else self.default
        if text is None:
            return () if self.repeatable else None
        return self.value([text])


def one(option: Option[T]) -> T:
    return cast("T", _field(option))


def at_most_one(option: Option[T]) -> T | None:
    return cast("T | None", _field(option))


def many(option: Option[T]) -> tuple[T, ...]:
    return cast("tuple[T, ...]", _field(replace(option, repeatable=True)))


def _field(option: Option[T]) -> object:
    return field(default_factory=lambda: option.default_value(os.environ), metadata={"option": option})


def options_of(config: type) -> list[tuple[str, Option[Any]]]:
    """Field names and their options by group, within one in the order of declaration."""
    options: list[tuple[str, Option[Any]]] = [(each.name, each.metadata["option"]) for each in fields(config)]
    return sorted(options, key=lambda pair: GROUPS.index(pair[1].group))
