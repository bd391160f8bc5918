"""Series before text: families of values under labels. `exposition` writes them as text."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from podgpu.catalog.row import Kind, Worth
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
        made = super().__new__(
            cls, ",".join([f'{name}="{value.translate(_ESCAPES)}"' for name, value in pairs])
        )
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


# The labels of one series, in parts: those of a card, say, and those of the value itself.
Key = tuple[Labels, ...]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: no series can be there twice, since the keys of `samples` are the labels.

    `group` is what clients can ask for together; most pages of other systems are about containers. `writing` is how its
    numbers look: on a page of another system, as they do there.
    """

    name: str
    kind: Kind
    help: str
    worth: Worth
    samples: dict[Key, float] = field(default_factory=dict)
    group: str = "containers"
    writing: Writing = own

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
    return sum(len(family.samples) for family in families)
