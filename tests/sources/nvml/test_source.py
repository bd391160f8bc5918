"""The supervised child: never two at a time, none during a release, and no unnoticed end."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Protocol

import pynvml
import pytest

from podgpu.agent.loop import Agent
from podgpu.model import Report
from podgpu.sources import child_process
from podgpu.sources.nvml import source
from podgpu.sources.nvml.source import NvmlSource
from tests.fakenvml.fake_node import FakeFault, FakeNode, environment, h200, make_processes
from tests.patience import PATIENCE, has_ended, until
from tests.tree import SETTINGS

MISMATCH = pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
HANG = FakeFault("hang", call="nvmlDeviceGetUtilizationRates", device=1)
LOST = f"return {pynvml.NVML_ERROR_GPU_IS_LOST}"


class OpenSampler(Protocol):
    def __call__(self, node: FakeNode, *, seconds: float = PATIENCE) -> NvmlSource:
        """Open a sampler on the node, whose reports may take so long."""


@pytest.fixture
async def start(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OpenSampler]:
    """Write the node to `tmp_path / "script"` to change it.

    A test that fails leaves no sampler behind for the next one to stumble over.
    """
    monkeypatch.setattr(source, "GRACE", PATIENCE)
    monkeypatch.setattr(child_process, "STOP_SECONDS", 0.2)
    monkeypatch.setattr(child_process, "EXIT_SECONDS", PATIENCE)
    opened: list[NvmlSource] = []

    def begin(node: FakeNode, *, seconds: float = PATIENCE) -> NvmlSource:
        node.write(tmp_path / "script")
        for name, value in environment(library, tmp_path / "script").items():
            monkeypatch.setenv(name, value)
        sampler = NvmlSource(interval=1.0, library=None)
        sampler._budget = seconds
        opened.append(sampler)
        return sampler

    yield begin
    for sampler in opened:
        await sampler.close()


def two_gpus(*faults: FakeFault) -> FakeNode:
    return FakeNode([h200(0), h200(1)], faults=list(faults))


def children() -> list[int]:
    """The samplers among this process's children: other tests leave programs running for each other."""
    listing = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [int(pid) for pid in listing.split() if b"podgpu.sources.nvml.child" in _command(int(pid))]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def stop(sampler: NvmlSource) -> None:
    assert sampler.pid
    os.kill(sampler.pid, signal.SIGSTOP)


def reasons(report: Report) -> list[str]:
    return [device.fault.reason if device.fault else "" for device in report.devices]


async def test_a_release_cuts_a_reading_short(start: OpenSampler) -> None:
    sampler = start(two_gpus(HANG))
    agent = Agent(sampler, node="n", interval=60.0, settings=SETTINGS)
    running, before = asyncio.create_task(agent.run()), agent.snapshot
    await until(lambda: sampler._is_stuck)
    assert await agent.release(600)
    snapshot = await asyncio.wait_for(agent.changed(before), PATIENCE / 2)
    (part,) = snapshot.parts
    assert part.fault
    assert part.fault.reason == "released"
    assert snapshot.errors == ()
    running.cancel()
    await agent.close()


async def test_a_release_lets_a_long_answer_end_first(
    start: OpenSampler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If nobody reads its answer, a sampler blocks while writing it until it is killed."""
    monkeypatch.setattr(child_process, "STOP_SECONDS", PATIENCE)
    node = FakeNode([h200(index) for index in range(16)])
    for gpu in node.gpus:
        gpu.processes = make_processes(200)
    sampler = start(node)
    await sampler.read()
    node.faults = [FakeFault("delay 500000", "nvmlDeviceGetUtilizationRates", 15)]
    node.write(tmp_path / "script")
    reading = asyncio.create_task(sampler.read())
    await until(lambda: sampler._is_stuck)
    process = sampler._process
    assert await sampler.release(60)
    assert process and process.returncode == 0
    await reading


@pytest.mark.parametrize("turns", [1, 20])
async def test_a_release_stops_a_sampler_that_is_just_starting(start: OpenSampler, turns: int) -> None:
    sampler = start(two_gpus())
    reading = asyncio.create_task(sampler.read())
    for _ in range(turns):
        await asyncio.sleep(0)
    assert await sampler.release(60)
    assert children() == []
    report = await reading
    assert report.fault
    assert report.fault.reason == "released"
    assert children() == []


async def test_a_second_release_is_true_only_when_the_sampler_is_gone(start: OpenSampler) -> None:
    sampler = start(two_gpus())
    await sampler.read()
    stop(sampler)
    first = asyncio.create_task(sampler.release(60))
    await asyncio.sleep(0)
    assert await sampler.release(60)
    assert children() == []
    assert await first


async def test_a_release_that_ends_too_soon_starts_no_second_sampler(start: OpenSampler) -> None:
    sampler = start(two_gpus())
    await sampler.read()
    stop(sampler)
    old = sampler.pid
    leaving = asyncio.create_task(sampler.release(0.01))
    await asyncio.sleep(0)  # it begins
    await until(lambda: not sampler._released_seconds)
    reading = asyncio.create_task(sampler.read())
    while not leaving.done():
        assert children() in ([old], [])
        await asyncio.sleep(0.01)
    assert await leaving
    assert reasons(await reading) == ["", ""]
    assert children() == [sampler.pid]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGRTMIN + 6])
async def test_a_death_between_two_readings_is_counted(start: OpenSampler, number: int) -> None:
    sampler = start(two_gpus())
    await sampler.read()
    assert sampler.pid
    pid = sampler.pid
    os.kill(pid, number)
    await until(lambda: has_ended(pid))
    report = await sampler.read()
    assert reasons(report) == ["", ""]
    assert report.errors["sampler_exited"] == 1
    assert "sampler_exited" not in (await sampler.read()).errors


async def test_a_driver_mismatch_keeps_its_name_and_costs_few_processes(
    start: OpenSampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is replaced at once, and the next only after a second."""
    now = 1000.0
    monkeypatch.setattr(child_process, "time", SimpleNamespace(monotonic=lambda: now))
    node = two_gpus(FakeFault(f"return {MISMATCH}"))
    node.init_result = MISMATCH
    sampler = start(node)

    async def pids() -> set[int | None]:
        found = set()
        for _ in range(5):
            report = await sampler.read()
            assert report.fault
            assert report.fault.reason == "driver_mismatch"
            found.add(sampler.pid)
        return found - {None}

    first = await pids()
    assert len(first) == 2
    now += 1.0
    assert len(await pids() - first) == 1


async def test_garbage_from_the_sampler_ends_it(
    start: OpenSampler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    impostor = tmp_path / "python"
    impostor.write_text("#!/bin/sh\nprintf '\\003\\000\\000\\000abc'\nexec sleep 100\n")
    impostor.chmod(0o755)
    sampler = start(two_gpus())
    monkeypatch.setattr(sys, "executable", str(impostor))
    report = await asyncio.wait_for(sampler.read(), PATIENCE)
    assert report.fault
    assert report.fault.reason == "sampler_exited"
    assert children() == []


async def test_modules_in_the_working_directory_are_not_the_samplers(
    start: OpenSampler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "msgspec.py").write_text("raise SystemExit('wrong module')")
    monkeypatch.chdir(tmp_path)
    sampler = start(two_gpus())
    assert reasons(await sampler.read()) == ["", ""]


async def test_a_listing_that_hangs_blinds_no_known_card(start: OpenSampler, tmp_path: Path) -> None:
    """With a lost card the list is read every time, so the hang happens at once."""
    node = two_gpus(FakeFault(LOST, "nvmlDeviceGetUtilizationRates", 1))
    sampler = start(node, seconds=3.0)
    await sampler.read()
    node.faults.append(FakeFault("hang", "nvmlDeviceGetCount_v2"))
    node.write(tmp_path / "script")
    report = await sampler.read()
    assert reasons(report) == ["", "lost"]
    assert report.errors["listing_hung"] == 1


@pytest.mark.parametrize("call", ["nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceRegisterEvents"])
async def test_a_first_listing_that_hangs_is_named(start: OpenSampler, call: str) -> None:
    sampler = start(two_gpus(FakeFault("hang", call)), seconds=0.2)
    report = await sampler.read()
    assert report.fault
    assert report.fault.reason == "hung"
    assert call.startswith(report.fault.call)
    assert report.fault.call


async def test_a_card_that_was_lost_before_the_start_is_shown(start: OpenSampler, tmp_path: Path) -> None:
    node = two_gpus(FakeFault(LOST, device=1))
    sampler = start(node)
    assert reasons(await sampler.read()) == ["", "lost"]
    node.faults = []
    node.write(tmp_path / "script")
    report = await sampler.read()
    assert reasons(report) == ["", ""]
    assert [device.gpu.uuid for device in report.devices] == [gpu.uuid for gpu in node.gpus]


async def test_a_sampler_that_somebody_stopped_is_replaced_by_the_next_reading(
    start: OpenSampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = start(two_gpus(), seconds=0.2)
    await sampler.read()
    old = sampler.pid
    stop(sampler)
    monkeypatch.setattr(source, "GRACE", 0.2)
    await sampler.read()
    assert children() == [sampler.pid] != [old]


PARENT = """
import asyncio, os
from podgpu.sources.nvml.source import NvmlSource

async def main():
    sampler = NvmlSource(interval=1.0, library=None)
    while (await sampler.read()).fault:  # a busy machine starts it slowly
        pass
    os.kill(sampler.pid, 19)  # stopped, it cannot see the end of its input
    print(sampler.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_a_sampler_dies_with_its_agent(start: OpenSampler) -> None:
    start(two_gpus())
    agent = await asyncio.create_subprocess_exec(sys.executable, "-c", PARENT, stdout=asyncio.subprocess.PIPE)
    assert agent.stdout
    pid = int(await agent.stdout.readline())
    agent.kill()
    await agent.wait()
    await until(lambda: has_ended(pid))
