"""One metric family, ready to print: every series is held under the text of its labels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from podgpu.catalog.row import Kind, Worth
from podgpu.views.text import clean

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


@dataclass(frozen=True, slots=True)
class Family:
    """`samples` maps a label block, `{a="b"}` or nothing, to its value: no series can be there twice."""

    name: str
    kind: Kind
    help: str
    worth: Worth
    samples: dict[str, float] = field(default_factory=dict)


def pairs_text(names: Sequence[str], values: Sequence[str | bytes]) -> str:
    """`a="b",c="d"`: labels without braces, to be joined to others by `block`."""
    return ",".join([f'{name}="{_escape(value)}"' for name, value in zip(names, values, strict=True)])


def block(*pairs: str) -> str:
    joined = ",".join(filter(None, pairs))
    return f"{{{joined}}}" if joined else ""


def labels_text(names: Sequence[str], values: Sequence[str | bytes]) -> str:
    """`{a="b",c="d"}`, or nothing without labels."""
    return block(pairs_text(names, values))


def count(families: Iterable[Family]) -> int:
    """Count the series."""
    return sum(len(family.samples) for family in families)


def _escape(value: str | bytes) -> str:
    return clean(value).translate(_ESCAPES)
