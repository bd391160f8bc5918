"""Writes docs/metrics.md, from the catalog."""

from podgpu.catalog import TOPICS, by_family, group_of
from podgpu.catalog.reference import aliases, labels_text, otel_name, served_text, unit_text, ways_text
from podgpu.catalog.row import Alias, Metric

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
* The name, type and labels of a *stable* metric do not change: [stability](stability.md) has the promise.
  An *experimental* one may change with any version.
* `?collect[]=NAME`, above each table, selects that group of metrics on any page.
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
            f"| `{row.family}` | {row.kind.value} | {unit_text(row)} | {labels_text(family)} | {row.help} "
            f"| {ways_text(family)} | {mig} | {served_text(family)} | {row.stability.value} |"
        )
    return "\n".join([*lines, ""])


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
