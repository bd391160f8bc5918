"""The agent's way to the log: a real child process, with the driver's device nodes played by a preload library."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import count

import pytest

from podgpu.model import ENDED_PID, HIDDEN_PID, Slice, SwitchLog
from podgpu.sources import child_process
from podgpu.sources.switches import watcher
from podgpu.sources.switches.slices import CardRecords
from podgpu.sources.switches.watcher import SwitchWatcher
from tests.fakeswitches.node import END, START, SwitchNode, record, recorded
from tests.patience import has_ended, wait_until
from tests.samples.switches import recording, slices

CARD = {"GPU-one": 0}
AGO_NS = 60_000_000_000  # longer than a recording, however late the child opens the log

# What the prototype asked of the driver before it read for the first time, and for every reading after that.
PROTOTYPE_OPENING, PROTOTYPE_READING = 17, 2


@asynccontextmanager
async def opened() -> AsyncIterator[SwitchWatcher]:
    reader = SwitchWatcher()
    try:
        yield reader
    finally:
        await reader.close()


async def first_log(reader: SwitchWatcher, cards: dict[str, int] = CARD) -> SwitchLog:
    for _ in range(3000):
        if found := await reader.read(cards):
            return found["GPU-one"]
        await asyncio.sleep(0.02)
    raise AssertionError(f"no log: {reader.status()}")


async def reason(reader: SwitchWatcher, cards: dict[str, int] = CARD) -> str:
    assert not await reader.read(cards)
    fault = reader.status().fault
    assert fault
    assert not reader.status().up
    return f"{fault.reason}: {fault.call}: {fault.detail}"


def alternating(begin_ns: int, *, pids: tuple[int, int] = (7, 8), number: int = 100) -> Iterator[bytes]:
    """Two tenants in turn, each for a millisecond."""
    sequence = count(1)
    for turn in range(number):
        pid, at = pids[turn % 2], begin_ns + turn * 1_000_000
        yield record(START, pid, at, sequence=next(sequence))
        yield record(END, pid, at + 900_000, sequence=next(sequence))


@pytest.mark.parametrize("name", ["A+B", "long+short"])
async def test_a_recorded_log_comes_through_unchanged(node: SwitchNode, name: str) -> None:
    played = recording()[name]
    begin_ns = time.time_ns() - 20_300_000_000
    node.script(begin_ago_ns=AGO_NS)
    node.play(recorded(played, begin_ns))
    async with opened() as reader:
        log = await first_log(reader)
        assert reader.status().up
    expected = slices(played)
    shift = log.slices[0].begin_ns - expected[0].begin_ns
    assert len(log.slices) >= len(expected)
    assert list(log.slices[: len(expected)]) == [
        Slice(of.pid, of.begin_ns + shift, of.end_ns + shift) for of in expected
    ]
    assert not log.lost
    assert not reader.errors


async def test_no_more_is_asked_of_the_driver_than_by_the_prototype(node: SwitchNode) -> None:
    node.script(begin_ago_ns=AGO_NS)
    node.play(alternating(time.time_ns() - 10_000_000_000))
    async with opened() as reader:
        await first_log(reader)
        opening = [call for call in node.calls() if not call.startswith(("open", "mmap"))]
        assert len(opening) <= PROTOTYPE_OPENING + PROTOTYPE_READING
        for _ in range(3):
            await reader.read(CARD)
        reading = [call for call in node.calls() if not call.startswith(("open", "mmap"))][len(opening) :]
        assert reading == ["control 20800403"] * 3  # nothing was new, so there was nothing to tell
    assert not node.is_bound()


async def test_nothing_is_open_while_no_card_is_watched(node: SwitchNode) -> None:
    async with opened() as reader:
        assert await reader.read({}) == {}
        assert reader.pid is None
        await reader.read(CARD)
        assert node.is_bound()
        await reader.read({})
        assert reader.pid is None
        assert not node.is_bound()
        assert reader.status().up


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ({"version_branch": 525}, "unknown_branch: version: driver 525.159.04"),
        ({"version_branch": 600}, "unknown_branch: version: driver 600.159.04"),
        ({"bind_status": 0x1B, "bind_reason": 4}, "refused: bind: needs an administrator"),
        ({"bind_status": 0x56, "bind_reason": 5}, "refused: bind: needs the profiling option of the vGPU"),
        (
            {"bind_status": 0x56},
            "refused: bind: not supported: confidential computing, vGPU without profiling, or MIG",
        ),
        ({"fail_class": 0x90CD}, "refused: allocate 0x90cd: not supported"),
        ({"put": 65_536}, "bad_layout: drain: the log goes on at 65536 of 65536"),
    ],
)
async def test_a_log_that_cannot_be_read_says_why(node: SwitchNode, script: dict[str, int], expected: str) -> None:
    node.script(**script)
    async with opened() as reader:
        assert (await reason(reader)).startswith(expected)
        asked = len(node.calls())
        await reader.read(CARD)
        assert len(node.calls()) == asked  # a card that refused is left alone for a while
    assert not node.is_bound()


async def test_on_an_unknown_branch_only_the_version_is_asked_for(node: SwitchNode) -> None:
    node.script(version_branch=600)
    async with opened() as reader:
        await reader.read(CARD)
    assert node.calls() == ["open nvidiactl", "version"]


@pytest.mark.parametrize("missing", ["nvidiactl", "nvidia0"])
async def test_without_a_device_node_there_is_no_log(node: SwitchNode, missing: str) -> None:
    (node.folder / missing).unlink()
    async with opened() as reader:
        assert await reason(reader) == f"no_device: open: there is no /dev/{missing}"


async def test_a_card_that_the_driver_does_not_list_has_no_log(node: SwitchNode) -> None:
    (node.folder / "nvidia5").touch()
    async with opened() as reader:
        assert (await reason(reader, {"GPU-one": 5})).startswith("no_device: cards")


async def test_one_card_that_refuses_does_not_cost_the_other(node: SwitchNode) -> None:
    node.script(begin_ago_ns=AGO_NS)
    node.play(alternating(time.time_ns() - 10_000_000_000))
    async with opened() as reader:
        found = await reader.read({"GPU-one": 0, "GPU-two": 7})
        assert list(found) == ["GPU-one"]
        fault = reader.status().fault
        assert fault
        assert fault.reason == "no_device"


async def test_a_ring_that_overflows_is_counted_and_lost_time(node: SwitchNode) -> None:
    node.script(begin_ago_ns=AGO_NS, short_ring=51)
    node.play(alternating(time.time_ns() - 10_000_000_000))
    async with opened() as reader:
        log = await first_log(reader)
        assert reader.errors["overflow"] == 150
        assert log.lost
        assert log.lost[-1].end_ns == log.end_ns


async def test_the_log_goes_on_at_the_beginning_of_the_ring(node: SwitchNode) -> None:
    begin = time.time_ns() - 200_000_000_000
    node.script(begin_ago_ns=260_000_000_000)
    records = list(alternating(begin, number=50_000))
    node.play(records[:60_000])
    async with opened() as reader:
        first = await first_log(reader)
        node.play(records)
        second = await first_log(reader)
        assert first.switches + second.switches == 50_000
        # What the fake driver plays so late is booked no more, but nothing is lost.
        assert reader.errors == {"late_record": 40_000}


async def test_a_clock_that_steps_is_counted_and_lost_time(node: SwitchNode) -> None:
    node.script(begin_ago_ns=AGO_NS)
    node.play(alternating(time.time_ns() - 10_000_000_000))
    async with opened() as reader:
        assert not (await first_log(reader)).lost
        node.script(ahead_ns=3_600_000_000_000)
        log = await first_log(reader)
        assert (log.lost[0].begin_ns, log.lost[-1].end_ns) == (log.begin_ns, log.end_ns)
        assert reader.errors["clock_step"] == 1


async def test_other_users_processes_are_hidden_and_that_is_said(node: SwitchNode) -> None:
    node.script(begin_ago_ns=AGO_NS)
    node.play(alternating(time.time_ns() - 10_000_000_000, pids=(7, 0)))
    async with opened() as reader:
        log = await first_log(reader)
        assert {of.pid for of in log.slices} == {7, HIDDEN_PID}
        status = reader.status()
        assert status.up
        assert status.fault
        assert status.fault.reason == "hidden_processes"


async def test_another_reader_on_the_card_is_left_alone(node: SwitchNode) -> None:
    async with opened() as reader, opened() as other:
        await reader.read(CARD)
        assert await reason(other) == "in_use: flock: another reader has /dev/nvidia0"
        assert node.is_bound()


async def test_a_reader_that_hangs_is_not_joined_by_a_second(node: SwitchNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "PATIENCE", 0.2)
    monkeypatch.setattr(child_process, "STOP_SECONDS", 0.2)
    monkeypatch.setattr(child_process, "EXIT_SECONDS", 60.0)
    node.script(hang_seconds=60)
    async with opened() as reader:
        assert (await reason(reader)).startswith("reader_stuck")
        stuck, waited = reader.pid, list[float]()
        ask = reader._ask

        async def asked(request: Callable[[], bytes], seconds: float) -> list[CardRecords] | None:
            waited.append(seconds)
            return await ask(request, seconds)

        monkeypatch.setattr(reader, "_ask", asked)
        assert (await reason(reader)).startswith("reader_stuck")
        assert waited == [0.0]
        assert reader.pid == stuck
        assert await reader.release(1)
    assert node.wait_until_free()


async def test_a_reader_that_is_killed_is_replaced_after_a_while(
    node: SwitchNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened() as reader:
        await reader.read(CARD)
        os.kill(reader.pid or 0, signal.SIGKILL)
        assert (await reason(reader)).startswith("reader_exited")
        assert node.wait_until_free()
        assert not await reader.read(CARD)
        assert reader.pid is None
        monkeypatch.setattr(reader, "_start_after", 0.0)
        await reader.read(CARD)
        assert reader.status().up
        assert node.is_bound()


async def test_a_release_lets_go_of_the_driver(node: SwitchNode) -> None:
    async with opened() as reader:
        await reader.read(CARD)
        assert await reader.release(60)
        assert not node.is_bound()
        assert not await reader.read(CARD)
        assert reader.pid is None
        fault = reader.status().fault
        assert fault
        assert fault.reason == "released"


def test_the_reader_ends_with_its_parent(node: SwitchNode) -> None:
    code = (
        "import asyncio, time\n"
        "from podgpu.sources.switches import watcher\n"
        "from podgpu.sources.switches.watcher import SwitchWatcher\n"
        "watcher.PATIENCE = 60\n"
        "async def main():\n"
        "    reader = SwitchWatcher()\n"
        "    await reader.read({'GPU-one': 0})\n"
        "    print(reader.pid, flush=True)\n"
        "    time.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        bound = node.wait_until_bound()
        parent.kill()
    assert bound
    assert node.wait_until_free()
    wait_until(lambda: has_ended(pid))


async def test_without_the_nodes_process_namespace_the_log_is_not_opened(node: SwitchNode) -> None:
    node.script(foreign_pids=1)
    async with opened() as reader:
        assert (await reason(reader)).startswith("pid_namespace")
    assert not node.calls()


async def test_records_of_processes_that_have_ended_are_nobodys_but_no_fault(node: SwitchNode) -> None:
    begin, sequence = time.time_ns() - 10_000_000_000, count(1)
    node.script(begin_ago_ns=AGO_NS)
    node.play(
        record(event, pid, begin + at * 1_000_000, sequence=next(sequence), context=context)
        for event, pid, at, context in (
            (START, 7, 0, 70),
            (END, -1, 5, 70),  # it ended on the way: its slice is still its own
            (START, -1, 6, 80),  # nobody knows whose this was
            (END, -1, 8, 80),
            (START, 7, 9, 70),
        )
    )
    async with opened() as reader:
        log = await first_log(reader)
        assert reader.status().fault is None
    assert [found.pid for found in log.slices] == [7, ENDED_PID, 7]
    assert not log.lost
    assert not reader.errors


async def test_records_of_instances_in_between_are_counted_and_left_out(node: SwitchNode) -> None:
    begin, records = time.time_ns() - 10_000_000_000, list[bytes]()
    for turn, own in enumerate(alternating(begin, number=10)):
        records.append(own)
        at = begin + turn * 500_000 + 1
        records.append(record(START if turn % 2 else END, 9, at, sequence=900 + turn, gi=1, ci=0))
    node.script(begin_ago_ns=AGO_NS)
    node.play(records)
    async with opened() as reader:
        log = await first_log(reader)
        assert reader.status().up
    assert reader.errors == {"mig_record": 20}
    assert {found.pid for found in log.slices} == {7, 8}
    assert not log.lost


async def test_a_gap_in_the_numbers_of_the_records_is_counted_and_lost_time(node: SwitchNode) -> None:
    records = list(alternating(time.time_ns() - 10_000_000_000, number=10))
    node.script(begin_ago_ns=AGO_NS)
    node.play([*records[:6], *records[8:]])
    async with opened() as reader:
        log = await first_log(reader)
    assert reader.errors["lost_records"] == 2
    assert log.lost


async def test_a_bind_that_fails_is_not_repeated_although_the_driver_asks_for_it(node: SwitchNode) -> None:
    node.script(bind_status=0x66)
    async with opened() as reader:
        assert await reason(reader) == "refused: bind: status 0x66"
    assert node.calls().count("control 20801238") == 1
