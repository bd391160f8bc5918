"""A card before Hopper, read by NVML, with the profiling values of a real dcgm-exporter's page beside it."""

from pathlib import Path

from podgpu.agent.attribution import Attribution
from podgpu.agent.loop import Agent
from podgpu.catalog.profiling import ROWS
from podgpu.model import SEES_ALL, Device, Gpu, Process, Reading, Report, Snapshot
from podgpu.sources.dcgm.page import PageClient
from podgpu.sources.dcgm.source import DcgmSource, FixedPages
from podgpu.sources.merged import Merged
from tests.agent.stage import check_balance
from tests.sources.dcgm.exporter import FakeExporter
from tests.sources.test_merged import ScriptedSource
from tests.tree import SETTINGS

PAGE = Path(__file__).parents[2] / "recorded" / "h200-dcgm" / "dcgm-exporter.prom"
UUID = "GPU-798b2088-090f-2112-5f64-3799f47ae3be"
OWN = {
    "utilization_ratio": 0.97,
    "power_watts": 652.0,
    "energy_joules_total": 5e6,
    "memory_used_bytes": 2.0**31,
}


def without_gpm() -> ScriptedSource:
    readings = tuple(Reading(metric, value) for metric, value in OWN.items())
    device = Device(
        gpu=Gpu(uuid=UUID, index=0, compute_capability="8.0"),
        readings=readings,
        processes=(Process(pid=7, kinds=("compute",), memory_bytes=1 << 30, sm_ratio=0.9),),
        ability=SEES_ALL,
    )
    return ScriptedSource("nvml", Report(devices=(device,)))


async def booked(*, beside: bool) -> Snapshot:
    nvml = without_gpm()
    async with FakeExporter(PAGE.read_bytes()) as exporter:
        page = DcgmSource(FixedPages({exporter.url: "n"}), PageClient(timeout=60.0, max_bytes=1 << 20))
        source = Merged(nvml, page) if beside else nvml
        agent = Agent(source, node="n", interval=5.0, settings=SETTINGS, attribution=Attribution(interval=5.0))
        await agent.cycle()
        await agent.cycle()
        await agent.close()
        return agent.snapshot


async def test_the_page_adds_profiling_values_and_nothing_is_there_twice() -> None:
    (card,) = (await booked(beside=True)).cards
    series = [(reading.metric, reading.labels) for reading in card.readings]
    assert len(series) == len(set(series))
    added = {metric for metric, _ in series} - OWN.keys()
    assert {"tensor_active_ratio", "dram_active_ratio", "graphics_engine_active_ratio"} <= added
    assert added - {row.name for row in ROWS} <= {"processes"}, "of the page, profiling alone"
    assert {reading.metric: reading.value for reading in card.readings if reading.metric in OWN} == OWN


async def test_the_books_are_those_of_the_driver() -> None:
    alone, beside = [await booked(beside=each) for each in (False, True)]
    for snapshot in (alone, beside):
        check_balance(snapshot)
    (first,), (second,) = alone.cards, beside.cards
    assert first.balance and second.balance
    assert (first.balance.energy_mj, first.balance.memory_bytes) == (
        second.balance.energy_mj,
        second.balance.memory_bytes,
    )
    assert [len(card.tenants) for card in (first, second)] == [0, 0], "the page's pods claim nothing here"
