"""The catalog as text for the terminal, and as JSON."""

import json
import textwrap
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

from podgpu.catalog import TOPICS, by_family, group_of
from podgpu.catalog.row import Cadence, Call, Field, Gpm, Metric, Scope

WIDTH = 80


def rows_as_text() -> str:
    """Write the catalog for a terminal of 80 columns."""
    return "\n".join(_topic_as_text(topic, rows) for topic, rows in TOPICS)


def rows_as_json() -> str:
    """Write the catalog as a JSON array, one object per row."""
    return json.dumps([_as_dict(topic, row) for topic, rows in TOPICS for row in rows], indent=2, ensure_ascii=False)


def way(row: Metric) -> str:
    """Describe how a row is read."""
    match row.read:
        case Call(function=function, args=args, pick=pick, bit=bit):
            inside = ", ".join(map(str, args))
            part = "" if pick is None else f"[{pick}]" if isinstance(pick, int) else f".{pick}"
            return f"nvmlDeviceGet{function}({inside}){part}" + ("" if bit is None else f" & {bit:#x}")
        case Field(id=number):
            return f"field {number}"
        case Gpm(id=number):
            return f"GPM {number}"
    return "podgpu"


def served(row: Metric) -> str:
    """Say whether podgpu's own page has the row: `default`, or what to set for it."""
    if row.scope is Scope.PROCESS:
        return "level=process"
    return "detail" if row.is_detail else "default"


def served_text(family: Sequence[Metric]) -> str:
    ways = {served(row) for row in family}
    if len(ways) == 1:
        return ways.pop()
    shown = (", ".join(row.label_values) for row in family if served(row) == "default")
    return f"default: {', '.join(shown)}; others: detail"


def aliases(row: Metric) -> dict[str, str]:
    """Return the names of a row in other systems, by system."""
    pairs = (("dcgm", row.dcgm), ("dcgm-4.9", row.dcgm49), ("dcgm-1.x", row.dcgm1x))
    names = {system: alias.name for system, alias in pairs if alias is not None}
    return names | ({"opentelemetry": otel_name(row)} if row.otel else {})


def otel_name(row: Metric) -> str:
    """Write `hw.gpu.io{network.io.direction="receive"}`."""
    if row.otel is None:
        return ""
    attributes = ", ".join(f'{name}="{value}"' for name, value in row.otel.attributes)
    return f"{row.otel.name}{{{attributes}}}" if attributes else row.otel.name


def unit_text(row: Metric) -> str:
    return row.base_unit.replace("_per_second", "/s")


def labels_text(family: Sequence[Metric]) -> str:
    pairs = [pair for row in family for pair in row.labels]
    fixed = {name: dict.fromkeys(value for known, value in pairs if known == name) for name, _ in pairs}
    listed = [f"`{name}`: {', '.join(values)}" for name, values in fixed.items()]
    return "; ".join([*listed, *(f"`{name}`" for name in family[0].own_labels)])


def ways_text(family: Sequence[Metric]) -> str:
    calls = dict.fromkeys(f"`nvmlDeviceGet{row.read.function}`" for row in family if isinstance(row.read, Call))
    fields = sorted(row.read.id for row in family if isinstance(row.read, Field))
    gpm = sorted(row.read.id for row in family if isinstance(row.read, Gpm))
    ways = [*calls]
    ways += [f"field {_ranges(fields)}"] if fields else []
    ways += [f"GPM {_ranges(gpm)}"] if gpm else []
    cadence = family[0].cadence
    return ", ".join(ways if cadence is Cadence.EVERY_CYCLE else (*ways, cadence.value))


def _ranges(numbers: Sequence[int]) -> str:
    """Write 3, 4, 5, 9 as 3-5, 9."""
    starts = [numbers[0], *(b for a, b in pairwise(numbers) if b != a + 1)]
    ends = [*(a for a, b in pairwise(numbers) if b != a + 1), numbers[-1]]
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def _topic_as_text(topic: str, rows: Sequence[Metric]) -> str:
    asked = f"?collect[]={group_of(rows[0])}"
    lines = (line for family in by_family(rows).values() for line in _family_as_text(family))
    return "\n".join([topic.upper(), asked, "", *lines])


def _family_as_text(family: Sequence[Metric]) -> Iterator[str]:
    row = family[0]
    facts = (row.kind.value, unit_text(row), "MIG too" if row.mig else "", row.stability.value)
    yield f"{row.family}  ({', '.join(filter(None, facts))})"
    yield from _wrapped(row.help)
    if labels := labels_text(family).replace("`", ""):
        yield from _wrapped(f"labels: {labels}")
    if (how := served_text(family)) != "default":
        yield from _wrapped(f"served: {how}")
    if row.read is not None:
        yield from _wrapped(f"read: {ways_text(family).replace('`', '')}")
    also = ((*aliases(row).values(), *(alias.name for alias in row.dcgm_also)) for row in family)
    if names := dict.fromkeys(chain.from_iterable(also)):
        yield from _wrapped(f"elsewhere: {', '.join(names)}")
    yield ""


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent="    ",
        subsequent_indent="      ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _as_dict(topic: str, row: Metric) -> dict[str, object]:
    return {
        "name": row.family,
        "mig_name": Scope.MIG.prefix + row.name if row.mig else None,
        "topic": topic,
        "group": group_of(row),
        "type": row.kind.value,
        "unit": row.base_unit,
        "help": row.help,
        "labels": dict(row.labels),
        "own_labels": row.own_labels,
        "read": way(row),
        "stability": row.stability.value,
        "cadence": row.cadence.value,
        "worth": row.worth.name.lower(),
        "served": served(row),
        "elsewhere": aliases(row),
    }
