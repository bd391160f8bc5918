"""The supervised child: never two at a time, none during a release, and no unnoticed end."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pynvml
import pytest

from podgpu.agent.loop import Agent
from podgpu.model import Report
from podgpu.sources import parent
from podgpu.sources.nvml.source import NvmlSource
from tests.fakeapi.patience import until
from tests.fakenvml.fake_node import FakeFault, FakeNode, environment, h200, make_processes
from tests.tree import SETTINGS

MISMATCH = pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
HANG = FakeFault("hang", call="nvmlDeviceGetUtilizationRates", device=1)
LOST = f"return {pynvml.NVML_ERROR_GPU_IS_LOST}"

Stage = Callable[[FakeNode], NvmlSource]


@pytest.fixture
async def stage(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    """Open a sampler with an interval of 1 s on the node. Write the node to `tmp_path / "script"` to change it.

    A test that fails leaves no sampler behind for the next one to stumble over.
    """
    opened: list[NvmlSource] = []

    def begin(node: FakeNode) -> NvmlSource:
        node.write(tmp_path / "script")
        for name, value in environment(library, tmp_path / "script").items():
            monkeypatch.setenv(name, value)
        opened.append(NvmlSource(interval=1.0, library=None))
        return opened[-1]

    yield begin
    for one in opened:
        await one.close()


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


async def test_a_release_cuts_a_reading_short(stage: Stage) -> None:
    agent = Agent(stage(two_gpus(HANG)), node="n", interval=60.0, settings=SETTINGS)
    running, before = asyncio.create_task(agent.run()), agent.snapshot
    await asyncio.sleep(0.5)
    assert await agent.release(60)
    snapshot = await asyncio.wait_for(agent.changed(before), 5.0)
    (part,) = snapshot.parts
    assert part.fault
    assert part.fault.reason == "released"
    assert snapshot.errors == ()
    running.cancel()
    await agent.close()


async def test_a_release_lets_a_long_answer_end_first(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """If nobody reads its answer, a sampler blocks while writing it until it is killed."""
    monkeypatch.setattr(parent, "STOP_SECONDS", 30.0)
    node = FakeNode([h200(index) for index in range(16)])
    for gpu in node.gpus:
        gpu.processes = make_processes(200)
    sampler = stage(node)
    await sampler.read()
    reading = asyncio.create_task(sampler.read())
    await asyncio.sleep(0.01)
    process = sampler._process
    assert await sampler.release(60)
    assert process and process.returncode == 0
    await reading


@pytest.mark.parametrize("turns", [1, 20])
async def test_a_release_stops_a_sampler_that_is_just_starting(stage: Stage, turns: int) -> None:
    sampler = stage(two_gpus())
    reading = asyncio.create_task(sampler.read())
    for _ in range(turns):
        await asyncio.sleep(0)
    assert await sampler.release(60)
    assert children() == []
    report = await reading
    assert report.fault
    assert report.fault.reason == "released"
    assert children() == []


async def test_a_second_release_is_true_only_when_the_sampler_is_gone(stage: Stage) -> None:
    sampler = stage(two_gpus())
    await sampler.read()
    stop(sampler)
    first = asyncio.create_task(sampler.release(60))
    await asyncio.sleep(0)
    assert await sampler.release(60)
    assert children() == []
    assert await first


async def test_a_release_that_ends_too_soon_starts_no_second_sampler(stage: Stage) -> None:
    sampler = stage(two_gpus())
    await sampler.read()
    stop(sampler)
    old = sampler.pid
    leaving = asyncio.create_task(sampler.release(0.1))
    await asyncio.sleep(0.2)
    reading = asyncio.create_task(sampler.read())
    await asyncio.sleep(0.5)
    assert children() == [old]
    assert await leaving
    assert reasons(await reading) == ["", ""]
    assert children() == [sampler.pid]
    await sampler.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGRTMIN + 6])
async def test_a_death_between_two_readings_is_counted(stage: Stage, number: int) -> None:
    sampler = stage(two_gpus())
    await sampler.read()
    assert sampler.pid
    pid = sampler.pid
    os.kill(pid, number)
    await until(lambda: not _lives(pid))
    report = await sampler.read()
    assert reasons(report) == ["", ""]
    assert report.errors["sampler_exited"] == 1
    assert "sampler_exited" not in (await sampler.read()).errors
    await sampler.close()


async def test_a_driver_mismatch_keeps_its_name_and_costs_few_processes(stage: Stage) -> None:
    node = two_gpus(FakeFault(f"return {MISMATCH}"))
    node.init_result = MISMATCH
    sampler = stage(node)
    found, pids = set(), set()
    for _ in range(8):
        report = await sampler.read()
        found.add(report.fault.reason if report.fault else "")
        pids.add(sampler.pid)
        await asyncio.sleep(0.1)
    assert found == {"driver_mismatch"}
    assert len(pids - {None}) <= 3
    await sampler.close()


async def test_garbage_from_the_sampler_ends_it(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    impostor = tmp_path / "python"
    impostor.write_text("#!/bin/sh\nprintf '\\003\\000\\000\\000abc'\nexec sleep 100\n")
    impostor.chmod(0o755)
    sampler = stage(two_gpus())
    monkeypatch.setattr(sys, "executable", str(impostor))
    report = await asyncio.wait_for(sampler.read(), 20)
    assert report.fault
    assert report.fault.reason == "sampler_exited"
    assert children() == []


async def test_modules_in_the_working_directory_are_not_the_samplers(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "msgspec.py").write_text("raise SystemExit('wrong module')")
    monkeypatch.chdir(tmp_path)
    sampler = stage(two_gpus())
    assert reasons(await sampler.read()) == ["", ""]
    await sampler.close()


async def test_a_listing_that_hangs_blinds_no_known_card(stage: Stage, tmp_path: Path) -> None:
    """With a lost card the list is read every time, so the hang happens at once."""
    node = two_gpus(FakeFault(LOST, "nvmlDeviceGetUtilizationRates", 1))
    sampler = stage(node)
    await sampler.read()
    node.faults.append(FakeFault("hang", "nvmlDeviceGetCount_v2"))
    node.write(tmp_path / "script")
    report = await sampler.read()
    assert reasons(report) == ["", "lost"]
    assert report.errors["listing_hung"] == 1
    await sampler.close()


@pytest.mark.parametrize("call", ["nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceRegisterEvents"])
async def test_a_first_listing_that_hangs_is_named(stage: Stage, call: str) -> None:
    sampler = stage(two_gpus(FakeFault("hang", call)))
    report = await sampler.read()
    assert report.fault
    assert report.fault.reason == "hung"
    assert call.startswith(report.fault.call)
    assert report.fault.call
    await sampler.close()


async def test_a_card_that_was_lost_before_the_start_is_shown(stage: Stage, tmp_path: Path) -> None:
    node = two_gpus(FakeFault(LOST, device=1))
    sampler = stage(node)
    assert reasons(await sampler.read()) == ["", "lost"]
    node.faults = []
    node.write(tmp_path / "script")
    report = await sampler.read()
    assert reasons(report) == ["", ""]
    assert [device.gpu.uuid for device in report.devices] == [gpu.uuid for gpu in node.gpus]
    await sampler.close()


async def test_values_from_before_a_hang_are_not_shown_after_it(stage: Stage, tmp_path: Path) -> None:
    node = two_gpus(FakeFault("hang", "nvmlDeviceGetTemperature", 1))
    sampler = stage(node)
    assert reasons(await sampler.read()) == ["", "hung"]
    await asyncio.sleep(1.2)
    asked_at = time.monotonic()
    # The hang ends while the other card still keeps the sampler waiting.
    node.faults = [FakeFault("delay 300000", "nvmlDeviceGetPowerUsage", 0), *node.faults]
    node.write(tmp_path / "script")
    reading = asyncio.create_task(sampler.read())
    await asyncio.sleep(0.1)
    node.faults.pop()
    node.write(tmp_path / "script")
    assert all(device.at >= asked_at for device in (await reading).devices if not device.fault)
    await sampler.close()


async def test_a_card_that_always_takes_too_long_is_shown_a_report_later(stage: Stage) -> None:
    """Longer than a report may take, but far from stuck."""
    sampler = stage(two_gpus(FakeFault("delay 1000000", "nvmlDeviceGetPowerUsage", 1)))
    found = []
    for _ in range(4):
        found.append(reasons(await sampler.read()))
        await asyncio.sleep(0.4)
    assert found[0] == ["", "hung"]
    assert ["", ""] in found[1:]
    await sampler.close()


async def test_a_sampler_that_somebody_stopped_is_replaced_within_two_intervals(stage: Stage) -> None:
    sampler = stage(two_gpus())
    await sampler.read()
    old = sampler.pid
    stop(sampler)
    await sampler.read()
    assert children() == [sampler.pid] != [old]
    await sampler.close()


PARENT = """
import asyncio, os
from podgpu.sources.nvml.source import NvmlSource

async def main():
    sampler = NvmlSource(interval=1.0, library=None)
    await sampler.read()
    os.kill(sampler.pid, 19)  # stopped, it cannot see the end of its input
    print(sampler.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_a_sampler_dies_with_its_agent(stage: Stage) -> None:
    stage(two_gpus())
    agent = await asyncio.create_subprocess_exec(sys.executable, "-c", PARENT, stdout=asyncio.subprocess.PIPE)
    assert agent.stdout
    pid = int(await agent.stdout.readline())
    agent.kill()
    await agent.wait()
    await until(lambda: not _lives(pid))


def _lives(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
