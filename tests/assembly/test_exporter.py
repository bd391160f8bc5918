"""A node that is read from the pages of its exporters."""

import asyncio

from podgpu.agent.loop import Agent
from podgpu.assembly.exporter import ExporterReader
from podgpu.model import Device, Gpu, Report
from podgpu.sources.dcgm import NAME
from tests.tree import SETTINGS


class CountingSource:
    name = NAME
    demo = False

    def __init__(self) -> None:
        self.open = self.most = 0

    async def read(self) -> Report:
        self.open += 1
        self.most = max(self.most, self.open)
        await asyncio.sleep(0)
        self.open -= 1
        return Report(devices=(Device(gpu=Gpu(uuid="GPU-1", index=0)),))

    async def release(self, seconds: float) -> bool:
        return True

    async def close(self) -> None: ...


async def test_a_page_that_asks_for_a_node_waits_until_the_loop_has_read_it() -> None:
    source = CountingSource()
    reader = ExporterReader(Agent(source, node="n", interval=10.0, settings=SETTINGS))
    snapshots = await asyncio.gather(reader.read(), reader.full(), reader.full())
    await reader.close()
    assert source.most == 1
    assert [[card.gpu.uuid for card in snapshot.cards] for snapshot in snapshots] == [["GPU-1"]] * 3
