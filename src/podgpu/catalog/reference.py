"""The catalog in writing: a page of the docs, text for the terminal, JSON."""

import json
import textwrap
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

from podgpu.catalog import TOPICS, by_family, group_of
from podgpu.catalog.row import Alias, Cadence, Call, Field, Gpm, Metric, Scope

WIDTH = 80

BASE_UNITS = ("bytes_per_second", "bytes", "celsius", "hertz", "joules", "ratio", "seconds", "watts")

_INTRODUCTION = """\
# Metrics

Generated from the catalog. To change it, change a row and run `make docs`.

* Every series of a GPU carries `node`, `gpu` (its index) and `uuid`; every series of a MIG instance carries
  `mig` and `profile` too. The labels in the tables are additional.
* Every series of a container or process carries `node`, `gpu`, `uuid`, `mig` (empty without MIG), `namespace`,
  `pod` and `container`; what is unattributed, ended or booked carries `node`, `gpu` and `uuid`; series of the agent
  itself and of pods carry `node`. `podgpu cluster` serves `podgpu_cluster_…`, with `node` where it
  is about one; an agent serves the others.
* A metric marked MIG exists for instances too, under `podgpu_mig_` in place of `podgpu_gpu_`.
* What a card does not offer is absent, never 0.
* The name, type and labels of a *stable* metric last: [stability](stability.md) has the promise. An *experimental* one
  may change with any version.
* `?collect[]=` and a name, at the head of a table, asks any page for that group of metrics alone.
* *Served* says whether podgpu's own page has the metric: by *default*; as a *detail*, with `--series.detail=on` or if a
  client asks for it by `?name[]=`; or with `--series.level=process`.
* *Slow* values change rarely or cost much. They are read less often than every cycle.
* `nvml…` is a call of the driver's library, *field* a value of `nvmlDeviceGetFieldValues`, *GPM* a profiling
  metric of Hopper and newer cards. Values that podgpu works out itself have no entry under *read*.
"""

_ELSEWHERE = """\
## Names elsewhere

The names of the same values in dcgm-exporter (up to 4.8, from 4.9 on, and 1.x), with their units, and in OpenTelemetry.
If two rows share a name elsewhere, the value there is their sum.
"""


def markdown() -> str:
    """Write docs/metrics.md."""
    return "\n".join([_INTRODUCTION, *map(_topic, TOPICS), _ELSEWHERE, _elsewhere()])


def rows_as_text() -> str:
    """Write the catalog for a terminal of 80 columns."""
    return "\n".join(_topic_as_text(topic, rows) for topic, rows in TOPICS)


def rows_as_json() -> str:
    """Write the catalog as a JSON array, one object per row."""
    return json.dumps([_as_dict(topic, row) for topic, rows in TOPICS for row in rows], indent=2, ensure_ascii=False)


def base_unit(row: Metric) -> str:
    """Return the unit at the end of a native name, or an empty text for plain numbers."""
    name = row.name.removesuffix("_total")
    return next((unit for unit in BASE_UNITS if name.endswith("_" + unit)), "")


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


def _served(family: Sequence[Metric]) -> str:
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


def _topic(topic: tuple[str, tuple[Metric, ...]]) -> str:
    title, rows = topic
    lines = [
        f"## {title}\n",
        f"`?collect[]={group_of(rows[0])}`\n",
        "| metric | type | unit | labels | meaning | read | MIG | served | stability |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for family in by_family(rows).values():
        row = family[0]
        mig = "yes" if row.mig else ""
        lines.append(
            f"| `{row.family}` | {row.kind.value} | {_unit(row)} | {_labels(family)} | {row.help} "
            f"| {_ways(family)} | {mig} | {_served(family)} | {row.stability.value} |"
        )
    return "\n".join([*lines, ""])


def _unit(row: Metric) -> str:
    return base_unit(row).replace("_per_second", "/s")


def _labels(family: Sequence[Metric]) -> str:
    pairs = [pair for row in family for pair in row.labels]
    fixed = {name: dict.fromkeys(value for known, value in pairs if known == name) for name, _ in pairs}
    listed = [f"`{name}`: {', '.join(values)}" for name, values in fixed.items()]
    return "; ".join([*listed, *(f"`{name}`" for name in family[0].own_labels)])


def _ways(family: Sequence[Metric]) -> str:
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


def _elsewhere() -> str:
    lines = ["| podgpu | DCGM to 4.8 | DCGM from 4.9 | DCGM 1.x | OpenTelemetry |", "|---|---|---|---|---|"]
    for _, rows in TOPICS:
        for row in rows:
            if aliases(row):
                cells = [
                    ", ".join(map(_with_unit, filter(None, names)))
                    for names in ((row.dcgm, *row.dcgm_also), (row.dcgm49,), (row.dcgm1x,))
                ]
                cells.append(f"`{otel_name(row)}`" if row.otel else "")
                lines.append(f"| `{_with_labels(row)}` | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _with_unit(alias: Alias) -> str:
    return f"`{alias.name}`" + (f" ({alias.unit.symbol})" if alias.unit.symbol else "")


def _with_labels(row: Metric) -> str:
    inside = ",".join(f'{name}="{value}"' for name, value in row.labels)
    return row.family + (f"{{{inside}}}" if inside else "")


def _topic_as_text(topic: str, rows: Sequence[Metric]) -> str:
    asked = f"?collect[]={group_of(rows[0])}"
    lines = (line for family in by_family(rows).values() for line in _family_as_text(family))
    return "\n".join([topic.upper(), asked, "", *lines])


def _family_as_text(family: Sequence[Metric]) -> Iterator[str]:
    row = family[0]
    facts = (row.kind.value, _unit(row), "MIG too" if row.mig else "", row.stability.value)
    yield f"{row.family}  ({', '.join(filter(None, facts))})"
    yield from _wrapped(row.help)
    if labels := _labels(family).replace("`", ""):
        yield from _wrapped(f"labels: {labels}")
    if (how := _served(family)) != "default":
        yield from _wrapped(f"served: {how}")
    if row.read is not None:
        yield from _wrapped(f"read: {_ways(family).replace('`', '')}")
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
        "unit": base_unit(row),
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
