"""From a page to the books and to the terminal: who is booked what if no processes can be seen."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podgpu.agent.attribution import Attribution
from podgpu.agent.loop import Agent
from podgpu.assembly.agent import open_agent
from podgpu.catalog.agent_parts import DCGM, PROCFS
from podgpu.config.precedence import load
from podgpu.host.procfs import Procfs
from podgpu.model import Snapshot
from podgpu.sources.dcgm.page import PageClient
from podgpu.sources.dcgm.source import DcgmSource, FixedPages
from tests.agent.stage import check_balance
from tests.agent.test_attribution import Kubelet
from tests.patience import PATIENCE
from tests.sources.dcgm.exporter import FakeExporter, recorded
from tests.tree import SETTINGS

INTERVAL = 0.05
HELD = 'container="main",namespace="ns"'


def page(*pods: str, joules: int = 0, util: int = 50) -> bytes:
    """Make the page of a card that pods share. It has each row once for each pod."""
    samples = {
        "DCGM_FI_DEV_GPU_UTIL": util,
        "DCGM_FI_DEV_FB_USED": 4096,
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 1000 * joules,
    }
    rows = [
        f'{name}{{gpu="0",UUID="GPU-1",device="nvidia0"{tenant}}} {value}\n'
        for name, value in samples.items()
        for tenant in [f',{HELD},pod="{pod}",vgpu="{number}"' for number, pod in enumerate(pods)] or [""]
    ]
    return "".join(rows).encode()


@asynccontextmanager
async def agent_over(exporter: FakeExporter, kubelet: Kubelet | None = None) -> AsyncIterator[Agent]:
    source = DcgmSource(FixedPages({exporter.url: "n"}), PageClient(timeout=PATIENCE, max_bytes=1 << 20))
    attribution = Attribution(interval=5.0, allocations=kubelet, processes=Procfs(Path("/proc")))
    agent = Agent(source, node="n", interval=5.0, settings=SETTINGS, attribution=attribution)
    try:
        yield agent
    finally:
        await agent.close()


async def two_cycles(agent: Agent, exporter: FakeExporter, later: bytes) -> Snapshot:
    await agent.cycle()
    exporter.page = later
    await asyncio.sleep(INTERVAL)
    await agent.cycle()
    snapshot = agent.snapshot
    check_balance(snapshot)
    return snapshot


async def test_who_holds_the_card_alone_is_taken_for_its_user() -> None:
    async with FakeExporter(page("train")) as exporter, agent_over(exporter) as agent:
        snapshot = await two_cycles(agent, exporter, page("train", joules=7))
    [card] = snapshot.cards
    [tenant] = card.tenants
    booking = tenant.booking
    assert (tenant.container.pod, booking.method, booking.energy_mj) == ("train", "exclusive", 7000)
    assert booking.busy_us == pytest.approx(booking.allocated_us / 2, abs=2)
    assert booking.memory_bytes is None
    assert booking.sm_ratio == pytest.approx(0.5, abs=1e-3)
    assert booking.power_watts is None, "nobody knows when the first step began"
    [claim] = tenant.claims
    assert (claim.source, claim.device_id) == ("dcgm", "GPU-1")
    assert (tenant.idle, booking.processes) == (None, None)


async def test_those_who_share_a_card_in_unknown_parts_are_booked_equally() -> None:
    async with FakeExporter(page("a", "b")) as exporter, agent_over(exporter) as agent:
        snapshot = await two_cycles(agent, exporter, page("a", "b", joules=8))
    [card] = snapshot.cards
    found = {(tenant.container.pod, tenant.booking.method, tenant.booking.energy_mj) for tenant in card.tenants}
    assert found == {
        ("a", "equal", 4000),
        ("b", "equal", 4000),
    }


async def test_memory_without_a_visible_process_is_unknown() -> None:
    async with FakeExporter(page("train")) as exporter, agent_over(exporter) as agent:
        snapshot = await two_cycles(agent, exporter, page("train", joules=7))
    memory = {part.reason: part.memory_bytes for part in snapshot.cards[0].rest if part.memory_bytes}
    assert memory == {"unknown": 4 << 30}


async def test_what_nobody_holds_is_booked_to_nobody() -> None:
    async with FakeExporter(page()) as exporter, agent_over(exporter) as agent:
        snapshot = await two_cycles(agent, exporter, page(joules=7))
    [card] = snapshot.cards
    assert (card.tenants, card.ended) == ((), ())
    assert {part.reason: part.energy_mj for part in card.rest if part.energy_mj} == {"unknown": 7000}


async def test_the_kubelet_knows_better_than_the_page() -> None:
    kubelet = Kubelet(chat="GPU-1")
    async with FakeExporter(page("train")) as exporter, agent_over(exporter, kubelet) as agent:
        snapshot = await two_cycles(agent, exporter, page("train", joules=7))
    [tenant] = snapshot.cards[0].tenants
    assert tenant.container.pod == "chat"
    assert [claim.source for claim in tenant.claims] == ["podresources"]


async def test_proc_is_no_part_of_it() -> None:
    async with FakeExporter(page("train")) as exporter:
        agent = open_agent(load({"source": ["dcgm"], "dcgm_url": [exporter.url]}, {}))
        await agent.cycle()
        assert PROCFS.name not in [part.name for part in agent.snapshot.parts]
        exporter.status = 500
        await agent.cycle()
        names = {part.name: part.fault for part in agent.snapshot.parts}
        await agent.close()
    fault = names[DCGM.name]
    assert fault is not None and fault.reason == "page_refused"
    assert PROCFS.name not in names


async def podgpu(*arguments: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "podgpu", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "COLUMNS": "100"},
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


async def test_the_terminal_shows_the_card_and_its_pod() -> None:
    async with FakeExporter(recorded("k8s_484_lowercase_hostname_t4")) as exporter:
        url = exporter.url.removesuffix("/metrics")  # the path goes without saying
        code, output = await podgpu("snapshot", "--source=dcgm", f"--dcgm.url={url}", "--node-name=n1")
    assert code == 0, output
    title, _, card, tenant, *_ = output.splitlines()
    assert title == "n1  1 GPU"
    assert card.split() == ["0", "Tesla", "T4", "43", "°C", "0%", "0.0", "/", "-", "16", "W"]
    assert tenant.split() == ["default/gpu-test/gpu-test", "100%", "0%", "-", "16", "W", "unknown"]


async def test_a_page_that_does_not_answer_is_said_on_the_terminal() -> None:
    code, output = await podgpu("snapshot", "--source=dcgm", "--dcgm.url=http://127.0.0.1:9")
    assert code == 1
    assert "dcgm: page_unreachable: 127.0.0.1:9: Connection refused" in output.replace("\n", " ")


@pytest.mark.parametrize("source", ["dcgm", "nvml+dcgm"])
async def test_without_an_address_or_an_api_server_the_error_says_what_to_give(source: str) -> None:
    code, output = await podgpu("snapshot", f"--source={source}")
    assert code == 2
    assert "--dcgm.url=http://HOST:9400/metrics" in output
