"""`make bench-scale`: measures what podgpu costs others, for docs/scale.md. Takes about three minutes."""

import asyncio

from msgspec.structs import replace

from bench.scale import apiserver, pages, prometheus
from podgpu.assembly.agent import open_agent, open_attribution
from podgpu.config.precedence import load
from podgpu.model import Snapshot
from podgpu.supervise import Supervisor
from podgpu.views.exposition import Format, render
from podgpu.views.native import families
from podgpu.views.series import SeriesFilter

CYCLES = 15
PAUSE = 0.5


async def main() -> None:
    snapshots = await _snapshots()
    figures = pages.run(snapshots[-1])
    moving = [_page(snapshot) for snapshot in snapshots]
    figures += await prometheus.run(moving)
    figures += await apiserver.run()
    width = max(len(figure.name) for figure in figures)
    for figure in figures:
        print(f"{figure.name:<{width}}  {figure.value}")


async def _snapshots() -> list[Snapshot]:
    """Let the demo's node run for a while."""
    config = load({"source": ["simulator"]}, {})
    attribution = open_attribution(config)
    agent = open_agent(config, attribution)
    watching = asyncio.create_task(attribution.run(Supervisor()))
    found = []
    try:
        for _ in range(CYCLES):
            await agent.cycle()
            found.append(agent.snapshot)
            await asyncio.sleep(PAUSE)
    finally:
        watching.cancel()
        await agent.close()
    return found[2:]


def _page(snapshot: Snapshot) -> bytes:
    named = replace(snapshot, node=prometheus.NODE)
    text = render(families(named, {}, choice=SeriesFilter()), Format.TEXT)
    return text.replace(b'uuid="GPU-', b'uuid="GPU-' + prometheus.NODE.encode())


asyncio.run(main())
