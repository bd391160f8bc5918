"""Series before text: families of values under labels, as far as the user chose them. `exposition` writes them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Self

from podgpu import catalog
from podgpu.catalog.row import Kind, Scope, Worth
from podgpu.views.sample_format import Writing, own
from podgpu.views.text import clean

_NOT_IN_A_NAME = re.compile("[^a-zA-Z0-9_]")
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def label_name(text: str) -> str:
    """`app.kubernetes.io/name` becomes `app_kubernetes_io_name`."""
    return _NOT_IN_A_NAME.sub("_", text)


class Labels(str):
    """Label pairs in order, their values made safe to print: the text that Prometheus writes, `a="b",c="d"`.

    `block` is the text in braces. It is kept with the pairs because a card's labels stand in front of a hundred values.
    A string, since those are hashed and compared fast: the labels of a series are its key.
    """

    __slots__ = ("block", "names", "values")

    names: tuple[str, ...]
    values: tuple[str, ...]
    block: str

    def __new__(cls, names: Sequence[str], values: Sequence[str | bytes]) -> Self:
        cleaned = tuple(map(clean, values))
        pairs = zip(names, cleaned, strict=True)
        made = super().__new__(cls, ",".join([f'{name}="{_escaped(value)}"' for name, value in pairs]))
        made.names, made.values = tuple(names), cleaned
        made.block = f"{{{made}}}" if made else ""
        return made

    @classmethod
    def of(cls, pairs: Mapping[str, str]) -> "Labels":
        return cls(tuple(pairs), tuple(pairs.values()))

    @classmethod
    def by_name(cls, pairs: Mapping[str, str]) -> "Labels":
        """Sorted, as many exporters do."""
        names = sorted(pairs)
        return cls(names, [pairs[name] for name in names])

    def pairs(self) -> dict[str, str]:
        return dict(zip(self.names, self.values, strict=True))

    def __repr__(self) -> str:
        return f"Labels({self!s})"


def _escaped(value: str) -> str:
    # To look first is ten times as fast, and few values have such characters.
    return value.translate(_ESCAPES) if '"' in value or "\\" in value or "\n" in value else value


# The labels of one series, in parts: those of a card, say, and those of the value itself.
Key = tuple[Labels, ...]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: no series can be there twice, since the keys of `samples` are the labels.

    `group` is what clients can ask for together; most pages of other systems are about containers. `writing` is how its
    numbers look: on a page of another system, as they do there. `totals` are the two other samples of a summary, by
    what is added to its name.
    """

    name: str
    kind: Kind
    help: str
    worth: Worth
    samples: dict[Key, float] = field(default_factory=dict)
    group: str = "containers"
    writing: Writing = own
    totals: dict[str, float] = field(default_factory=dict)

    @classmethod
    def gauge(cls, name: str, help_text: str, writing: Writing) -> "Family":
        """A core metric of another system, with its way to write numbers."""
        return cls(name, Kind.GAUGE, help_text, Worth.CORE, writing=writing)

    def put(self, value: float | None, *labels: Labels) -> None:
        """Set a series; an unknown value makes none."""
        if value is not None:
            self.samples[labels] = value

    def add(self, value: float | None, *labels: Labels) -> None:
        """Add to a series: pods that were made again under their name share theirs."""
        if value is not None:
            self.samples[labels] = self.samples.get(labels, 0.0) + value


def count(families: Iterable[Family]) -> int:
    """Count the series."""
    return sum(len(family.samples) + len(family.totals) for family in families)


NAMES = frozenset(catalog.families())  # of podgpu's own metrics
GROUPS = catalog.GROUPS  # that a client can ask for
LEVELS = ("billing", "node", "pod", "container", "process")
BILLING, NODE, POD, CONTAINER, PROCESS = LEVELS
# What `podgpu report` is made of, and what says whether it was scraped.
BILLED = frozenset(
    {
        *(f"podgpu_{name}" for name in ("build_info", "up", "series_dropped_total", "pod_info", "gpu_info")),
        "podgpu_unplaced_seconds_total",
        *(f"podgpu_gpu_{name}_total" for name in ("booked_busy_seconds", "booked_energy_joules", "energy_joules")),
        *(
            f"podgpu_{scope}_{name}_total"
            for scope in ("unattributed", "container")
            for name in ("busy_seconds", "busy_bound_seconds", "energy_joules")
        ),
        *(
            f"podgpu_container_{name}_total"
            for name in ("allocated_seconds", "unknown_share_seconds", "busy_likely_seconds")
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesFilter:
    """`level` is how far down series go, and `detail` whether those of little worth are included.

    `allow` and `deny` are names of families, in which `*` stands for anything. `deny` takes precedence.
    """

    level: str = CONTAINER
    detail: bool = False
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def has_scope(self, scope: Scope) -> bool:
        if scope is Scope.PROCESS:
            return self.level == PROCESS
        return scope is not Scope.CONTAINER or self.level != NODE

    def has_native(self, name: str) -> bool:
        """Whether podgpu's own page has the family at this level."""
        return self.level != BILLING or name in BILLED

    def apply(self, families: Iterable[Family]) -> list[Family]:
        if not (self.allow or self.deny):
            return list(families)
        return [family for family in families if self._is_chosen(family.name)]

    def _is_chosen(self, name: str) -> bool:
        is_allowed = not self.allow or any(fnmatchcase(name, pattern) for pattern in self.allow)
        return is_allowed and not any(fnmatchcase(name, pattern) for pattern in self.deny)


EVERYTHING = SeriesFilter(detail=True)


@dataclass(frozen=True, slots=True)
class FamilyQuery:
    """What a client asks for: families by name, or by the group that they are in."""

    names: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    def matches(self, family: Family) -> bool:
        return family.name in self.names or family.group in self.groups


def fit(families: Sequence[Family], limit: int) -> tuple[list[Family], dict[str, int]]:
    """Return the families that fit, in page order, and the number of series dropped by family.

    Cut first is the lowest worth, within it the largest family, within that the later one. A family is cut
    whole: `sum()` over a part of one would be a wrong number that looks right.
    """
    excess = count(families) - limit
    order = sorted(enumerate(families), key=lambda at: (at[1].worth.value, -len(at[1].samples), -at[0]))
    cut = set()
    dropped: dict[str, int] = {}
    for position, family in order:
        if excess <= 0:
            break
        size = len(family.samples)
        excess -= size
        cut.add(position)
        dropped[family.name] = dropped.get(family.name, 0) + size
    kept = [family for position, family in enumerate(families) if position not in cut]
    return kept, {name: size for name, size in dropped.items() if size}
