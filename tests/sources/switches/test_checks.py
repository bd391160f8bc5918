"""Checks of the log at random moments: a real child process, with the driver's device nodes played by a library."""

import asyncio
import time
from collections import Counter

import pytest

from podgpu.model import SpotLog
from podgpu.sources.switches.access import is_known
from tests.fakeswitches.node import SwitchNode
from tests.sources.switches.test_watcher import CARD, alternating, opened


async def test_a_check_opens_the_log_for_a_moment_now_and_then(node: SwitchNode) -> None:
    """Between two checks nothing is open, and the process is the same."""
    node.play(alternating(time.time_ns(), number=200_000))
    async with opened() as reader:
        found: list[SpotLog] = []
        was_open = was_free = False
        first = None
        while len(found) < 2:
            found += (await reader.check(CARD)).get("GPU-one", [])
            was_open |= node.is_bound()
            was_free |= was_open and not node.is_bound()
            first = first or reader.pid
            await asyncio.sleep(0.05)
        assert (was_open, was_free) == (True, True)
        assert reader.pid == first
        assert not reader.errors
    for log in found:
        assert not log.is_incomplete
        assert log.stands_for >= 12 * 0.55
        begin, end = log.slices[0].begin_ns, log.slices[-1].end_ns
        assert (end - begin) / 1e9 == pytest.approx(0.3, abs=0.003)
        time_of: Counter[int] = Counter()
        for piece in log.slices:
            time_of[piece.pid] += piece.end_ns - piece.begin_ns
        assert time_of[7] / time_of.total() == pytest.approx(0.5, abs=0.01)


async def test_a_check_without_a_switch_says_so_and_keeps_the_log_open_for_a_second_at_most(node: SwitchNode) -> None:
    node.play([])
    async with opened() as reader:
        found: list[SpotLog] = []
        while len(found) < 2:
            found += (await reader.check(CARD)).get("GPU-one", [])
            await asyncio.sleep(0.05)
    assert not any(log.slices or log.is_incomplete for log in found)
    assert found[1].stands_for >= 12.0, "the log was open for a second, so the next check is drawn from twelve"


async def test_a_card_that_refuses_a_check_is_reported(node: SwitchNode) -> None:
    node.script(bind_status=0x1B, bind_reason=4)
    async with opened() as reader:
        while reader.status().up:
            assert not await reader.check(CARD)
            await asyncio.sleep(0.05)
        fault = reader.status().fault
        assert fault
        assert (fault.reason, fault.detail) == ("refused", "needs an administrator")


def test_a_driver_is_known_by_its_branch() -> None:
    assert is_known("580.159.04")
    assert not is_known("999.1")
    assert not is_known("")
