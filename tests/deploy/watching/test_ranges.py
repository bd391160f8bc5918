"""What is booked is within its range, in every query that shows both, over half an hour of the demo."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from podgpu.agent.loop import Agent
from podgpu.views import exposition, native
from podgpu.views.exposition import Format
from tests.deploy.watching.test_dashboards import PANELS, chosen
from tests.e2e.prometheus import PROGRAM, Labels, Prometheus, keep, started
from tests.sources.simulator.clocked_agent import cycles

pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="prometheus is not installed"),
    pytest.mark.asyncio(loop_scope="module"),
]

BEGIN, SECONDS, SCRAPE, STEP = 1_790_000_000, 1800, 15, 30
RANGES = (("Likely from", "Likely to"), ("At least", "At most"))
NOISE = 1e-9


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def half_an_hour(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Prometheus]:
    folder = tmp_path_factory.mktemp("ranges")
    lines: list[str] = []
    async for number, agent in _numbered(5.0):
        if number % SCRAPE == 0:
            page = exposition.render(native.families(agent.snapshot, {}), Format.TEXT).decode()
            at = (BEGIN + number) * 1000
            lines += [f"{line} {at}" for line in page.splitlines() if line.startswith("podgpu_container_")]
    keep(lines, folder)
    configuration = folder / "prometheus.yml"
    configuration.write_text("{}")
    with started(configuration, folder) as here:
        yield here


async def _numbered(interval: float) -> AsyncIterator[tuple[int, Agent]]:
    second = 0
    async for agent in cycles(interval, SECONDS):
        yield second, agent
        second += int(interval)


def _asked(store: Prometheus, title: str, at: int) -> dict[frozenset[tuple[str, str]], float]:
    (panel,) = [
        panel
        for board, panel in PANELS
        if (board.uid, panel.title, panel.kind) == ("podgpu-sharing", "Containers", "table")
    ]
    (query,) = [query for query in panel.queries if query.legend == title]
    return {_key(labels): value for labels, value in store.query(chosen(query.promql), at)}


def _key(labels: Labels) -> frozenset[tuple[str, str]]:
    return frozenset(labels.items())


async def test_what_is_booked_is_never_outside_its_range(half_an_hour: Prometheus) -> None:
    moments, outside = 0, []
    for at in range(BEGIN + 300, BEGIN + SECONDS - SCRAPE, STEP):
        booked = _asked(half_an_hour, "Booked", at)
        for least, most in RANGES:
            low, high = _asked(half_an_hour, least, at), _asked(half_an_hour, most, at)
            for container, value in booked.items():
                moments += 1
                if not low[container] - NOISE <= value <= high[container] + NOISE:
                    outside.append((at - BEGIN, dict(container)["pod"], low[container], value, high[container]))
    assert outside == []
    assert moments >= 1_000
