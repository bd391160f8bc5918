"""Writes the figures that docs quote: docs/figures.json, and each place in the Markdown that names one of them.

`derived` figures follow from the code: they are of the demo's node after a minute, by its own clock. `measured` ones
come from runs on real hardware, and are kept by hand. A place is a number with the figure's name in a comment behind
it, `1,161<!-- figure: node.series -->`, or a table between `<!-- table: NAME -->` and `<!-- /table -->`.
"""

import argparse
import asyncio
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bench.scale.pages import Size, cluster_series, tenants_of, unit_sizes
from podgpu.agent.loop import Agent
from podgpu.assembly.agent import open_attribution
from podgpu.catalog.row import Worth
from podgpu.config import Config
from podgpu.insight import InsightSettings
from podgpu.model import Snapshot, of_one
from podgpu.model.frames import frame
from podgpu.sources.simulator.source import Simulator
from podgpu.views.cluster.json import encode
from podgpu.views.native import families
from podgpu.views.series import SeriesFilter, fit

ROOT = Path(__file__).resolve().parent.parent
FILE = "docs/figures.json"
INTERVAL, SECONDS = 5.0, 60.0
SCRAPE_SECONDS = 15
SAMPLE_LIMIT = 1000  # of the sample in operations.md
# As measured by `make bench-scale`, and a sample on disk as Prometheus' documentation has it.
SERIES_BYTES, SAMPLE_BYTES, REMOTE_BYTES = 3600, 2, 21
BORN = 1_800_000_000.0
CHOICES = {
    "node": SeriesFilter(),
    "detail": SeriesFilter(detail=True),
    "level-node": SeriesFilter(level="node"),
    "level-billing": SeriesFilter(level="billing"),
    "level-process": SeriesFilter(level="process"),
}
MARK = re.compile(r"(?P<value>[\d.,–]+)(?P<after>[*`]*<!-- figure: (?P<name>[\w.-]+) -->)")
TABLE = re.compile(r"<!-- table: (?P<name>[\w-]+) -->\n(?P<rows>.*?)<!-- /table -->", re.DOTALL)
# In a block of code there is no place for a comment: it stands before the block, which must have the number.
SAMPLE = re.compile(r"<!-- sample: (?P<name>[\w.-]+) -->\n\n```\w*\n(?P<text>.*?)```", re.DOTALL)
_UNITS = {"TB": 1e12, "GB": 1e9, "MB": 1e6, "KB": 1e3}
Figures = Mapping[str, str]


class MeasuredFigure(Struct, frozen=True):
    value: str
    unit: str
    how: str
    under: str  # which of the conditions


class FiguresFile(Struct, frozen=True):
    derived: dict[str, str]
    conditions: dict[str, str]
    measured: dict[str, MeasuredFigure]

    @property
    def values(self) -> Figures:
        return self.derived | {name: figure.value for name, figure in self.measured.items()}


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def demo_snapshot() -> Snapshot:
    """Return the demo's node as it is after a minute. The same every time."""
    clock = _Clock()
    agent = Agent(
        Simulator(seed=1, clock=clock, wall=lambda: BORN),
        node="gpu-node-1",
        interval=INTERVAL,
        settings=InsightSettings(idle_after=1800.0),
        attribution=open_attribution(Config(source="simulator", interval=INTERVAL)),
    )
    try:
        while clock.now <= SECONDS:
            await agent.cycle()
            clock.now += INTERVAL
        parts = tuple(replace(part, duration_seconds=0.0) for part in agent.snapshot.parts)
        return replace(agent.snapshot, taken_at=BORN + SECONDS, parts=parts)
    finally:
        await agent.close()


def derived(node: Snapshot) -> dict[str, str]:
    found = {"node.gpus": str(len(node.cards)), "node.containers": str(tenants_of(node))}
    for name, size in {
        **unit_sizes(node),
        **{name: Size(node, choice) for name, choice in CHOICES.items()},
    }.items():
        found[f"{name}.series"] = f"{size.series:,.0f}"
        found |= {f"{name}.{worth.name.lower()}": f"{size.worth.get(worth, 0.0):,.0f}" for worth in Worth}
        found[f"{name}.text-kb"] = _digits(size.bytes / 1000)
    errors = next(page for page in families(node, {}) if page.name == "podgpu_errors_total")
    found["agent.error-counters"] = str(len(errors.samples))
    _, dropped = fit(families(node, {}, choice=SeriesFilter()), SAMPLE_LIMIT)
    found["limit.series"] = f"{Size(node).series + len(dropped):,.0f}"  # each has a counter then
    of_node, of_cluster = cluster_series(node)
    found |= {"cluster.of-node": str(of_node), "cluster.of-cluster": str(of_cluster)}
    recorded = len(frame(node.taken_at, (encode(of_one(node)),))) / 1024
    found["recording.snapshot-kib"] = f"{5 * round(recorded / 5)}"  # libraries compress a little differently
    return dict(sorted(found.items()))


def _digits(value: float) -> str:
    """Two digits that count: more would change with a time stamp."""
    return f"{float(f'{value:.2g}'):g}"


def _series_table(figures: Figures) -> Iterable[str]:
    rows = {
        "the agent itself": "agent",
        "a GPU": "gpu",
        "a MIG instance": "mig",
        "a container on a GPU": "container",
        "a pod": "pod",
        "**the whole node**": "node",
        "with `--series.detail=on`": "detail",
        "with `--series.level=node`": "level-node",
        "with `--series.level=billing`": "level-billing",
        "with `--series.level=process`": "level-process",
    }
    levels = [worth.name.lower() for worth in reversed(Worth)]
    yield f"| | series | {' | '.join(levels)} | text |"
    yield "|---|---|" + "---|" * (len(levels) + 1)
    for title, name in rows.items():
        counts = [figures[f"{name}.{level}"] for level in levels]
        cells = [figures[f"{name}.series"], *("" if count == "0" else count for count in counts)]
        yield f"| {title} | {' | '.join(cells)} | {figures[f'{name}.text-kb']} KB |"


def _prometheus_table(figures: Figures) -> Iterable[str]:
    """Multiply what a node has by what Prometheus takes for a series and a sample."""
    series, gpus = _number(figures["node.series"]), _number(figures["node.gpus"])
    yield "| nodes | GPUs | series | samples/s | memory, measured rate | disk for 15 days |"
    yield "|---|---|---|---|---|---|"
    for nodes in (1, 100, 1000, 10_000):
        samples = nodes * series / SCRAPE_SECONDS
        memory, disk = nodes * series * SERIES_BYTES, samples * SAMPLE_BYTES * 15 * 86400
        sizes = ("", "") if nodes == 1 else (_size(memory), _size(disk))
        rounded = series if nodes == 1 else float(f"{nodes * series:.3g}")
        cells = [f"{count:,.0f}" for count in (nodes, nodes * gpus, rounded, float(f"{samples:.2g}"))]
        yield f"| {' | '.join((*cells, *sizes))} |"


def _remote_write_table(figures: Figures) -> Iterable[str]:
    series, detail = _number(figures["node.series"]), _number(figures["detail.series"])
    yield "| nodes | scrape every 15 s | every 60 s | every 60 s, with all of *detail* |"
    yield "|---|---|---|---|"
    for nodes in (100, 1000, 10_000):
        rates = [nodes * series / SCRAPE_SECONDS, nodes * series / 60, nodes * detail / 60]
        cells = [f"{_size(rate * REMOTE_BYTES)}/s" for rate in rates]
        yield f"| {nodes:,} | {' | '.join(cells)} |"


def _size(value: float) -> str:
    """Write bytes with two digits: `4.2 GB`."""
    unit, factor = next((unit, factor) for unit, factor in _UNITS.items() if value >= factor)
    return f"{_digits(value / factor)} {unit}"


def _number(text: str) -> int:
    return int(text.replace(",", ""))


TABLES: Mapping[str, Callable[[Figures], Iterable[str]]] = {
    "series": _series_table,
    "prometheus": _prometheus_table,
    "remote-write": _remote_write_table,
}


def pages(root: Path) -> list[Path]:
    return sorted([*root.glob("*.md"), *root.glob("docs/*.md")])


def rewritten(text: str, figures: Figures) -> str:
    """Return the page with the figures as they are now. An unknown name is a KeyError."""
    text = MARK.sub(lambda found: figures[found["name"]] + found["after"], text)

    def table(found: re.Match[str]) -> str:
        rows = "".join(f"{row}\n" for row in TABLES[found["name"]](figures))
        return f"<!-- table: {found['name']} -->\n{rows}<!-- /table -->"

    return TABLE.sub(table, text)


def false_samples(text: str, figures: Figures) -> list[str]:
    """Return the names of figures that a block of code should have and has not."""
    return [
        found["name"]
        for found in SAMPLE.finditer(text)
        if not re.search(rf"\b{re.escape(figures[found['name']].replace(',', ''))}\b", found["text"])
    ]


def read(root: Path) -> FiguresFile:
    return msgspec.json.decode((root / FILE).read_bytes(), type=FiguresFile)


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.figures", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a figure is stale")
    check = parser.parse_args(arguments).check
    document = replace(read(root), derived=derived(asyncio.run(demo_snapshot())))
    figures = document.values
    wanted = {root / FILE: msgspec.json.format(msgspec.json.encode(document)).decode() + "\n"}
    wanted |= {page: rewritten(page.read_text(encoding="utf-8"), figures) for page in pages(root)}
    stale = [path for path, text in wanted.items() if path.read_text(encoding="utf-8") != text]
    for path in stale:
        if check:
            sys.stderr.write(f"{path.relative_to(root)} is stale: run make figures\n")
        else:
            path.write_text(wanted[path], encoding="utf-8")
    false = [(page, name) for page in pages(root) for name in false_samples(wanted[page], figures)]
    for page, name in false:
        sys.stderr.write(f"{page.relative_to(root)}: the sample has another {name} than {figures[name]}\n")
    return 1 if false or (check and stale) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
