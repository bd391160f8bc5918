"""An option is declared once, as a field of a frozen dataclass. All its names derive from the flag.

Every room may declare its own, and `config` collects them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast

from podgpu.errors import UserError
from podgpu.option.value import OneOf, ValueParser

P = ParamSpec("P")
T = TypeVar("T")
Environ = Mapping[str, str]


class OptionsOf(Protocol):
    """Returns the instance of a class of options, with the values that the user chose."""

    def __call__(self, section: type[T], /) -> T: ...


@dataclass(frozen=True)
class Option(Generic[T]):
    """`default` is text as a user would write it. `default_note` describes a default that is not a fixed text.

    `also_from` names environment variables that other programs set. They count only if the option itself is not set.
    `in_file` is False if the configuration file cannot set the option. `alias` is another spelling of the flag, which
    users know from kubectl. `was` is the flag in the last minor version: the old names still work, with a warning.
    """

    group: str
    flag: str
    help: str
    parse: Callable[[str], T]
    value_name: str = ""
    default: str | None = None
    default_note: str = ""
    also_from: tuple[str, ...] = ()
    repeatable: bool = False
    in_file: bool = True
    alias: str = ""
    was: str = ""

    @property
    def former(self) -> "Option[T] | None":
        """The same option by its old names."""
        return replace(self, flag=self.was, was="", alias="") if self.was else None

    @property
    def key(self) -> str:
        """Its key in the file, as a path with dots."""
        return self.flag.removeprefix("--")

    @property
    def name(self) -> str:
        """Its name in Python."""
        return self.key.replace(".", "_").replace("-", "_")

    @property
    def environment(self) -> str:
        return f"PODGPU_{self.name.upper()}"

    @property
    def choices(self) -> tuple[str, ...]:
        return self.parse.choices if isinstance(self.parse, OneOf) else ()

    @property
    def placeholder(self) -> str:
        """What stands for the value in help texts."""
        by_parser = self.parse.value_name if isinstance(self.parse, ValueParser) else "|".join(self.choices)
        return self.value_name or by_parser or "NAME"

    @property
    def default_text(self) -> str:
        default = self.default_note or self.default or "none"
        variables = " or ".join(f"${name}" for name in self.also_from)
        return f"{variables}, else {default}" if variables else default

    def value(self, texts: Sequence[str]) -> T | tuple[T, ...]:
        """Parse the texts. The last counts, unless the option may be repeated."""
        parts = [part.strip() for text in texts for part in (text.split(",") if self.repeatable else [text])]
        if not all(parts):
            raise UserError("the value is empty; give one or leave the option out")
        return tuple(self.parse(part) for part in parts) if self.repeatable else self.parse(parts[-1])

    def default_value(self) -> T | tuple[T, ...] | None:
        if self.default is None:
            return () if self.repeatable else None
        return self.value([self.default])


def _declaring(declare: Callable[P, Option[T]]) -> Callable[P, T]:
    """Return a function that takes what `declare` takes, and returns a field of a dataclass."""

    def declared(*args: P.args, **kwargs: P.kwargs) -> T:
        option = declare(*args, **kwargs)
        return cast("T", field(default_factory=option.default_value, metadata={"option": option}))

    return declared


def _optional(declare: Callable[P, Option[T]]) -> Callable[P, Option[T | None]]:
    return cast("Callable[P, Option[T | None]]", declare)


def _repeatable(declare: Callable[P, Option[T]]) -> Callable[P, Option[tuple[T, ...]]]:
    def declared(*args: P.args, **kwargs: P.kwargs) -> Option[tuple[T, ...]]:
        return cast("Option[tuple[T, ...]]", replace(declare(*args, **kwargs), repeatable=True))

    return declared


class OptionGroup(str):
    """Its functions declare an option of the group: one with a value, with a value or None, or with any number."""

    __slots__ = ()

    single = _declaring(Option)
    optional = _declaring(_optional(Option))
    repeatable = _declaring(_repeatable(Option))


GENERAL, SOURCE, KUBERNETES = OptionGroup("General"), OptionGroup("Source"), OptionGroup("Kubernetes")
WEB, DIALECTS, LOG = OptionGroup("Web"), OptionGroup("Dialects"), OptionGroup("Log")
CLUSTER = OptionGroup("Cluster")  # for commands that read a whole cluster
STORE = OptionGroup("Store and prices")  # for commands that read a Prometheus-compatible store
TERMINAL = OptionGroup("Terminal")  # for commands that read an agent or a cluster, and serve nothing
GROUPS = (GENERAL, SOURCE, KUBERNETES, WEB, DIALECTS, LOG, CLUSTER, STORE, TERMINAL)
NOT_AN_AGENTS = (CLUSTER, STORE, TERMINAL)  # groups that an agent does not use


def options_of(section: type) -> dict[str, Option[Any]]:
    """Return the options of a class by field name, in the order of declaration."""
    return {field.name: field.metadata["option"] for field in fields(section) if "option" in field.metadata}
