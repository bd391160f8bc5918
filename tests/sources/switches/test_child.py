"""The process that reads the log: it is small, and what it writes is understood."""

import subprocess
import sys
import time

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from podgpu.sources import child_process
from podgpu.sources.switches.child import packed
from tests.fakeswitches.node import SwitchNode
from tests.sources.switches.test_hazards import run
from tests.sources.switches.test_watcher import AGO_NS, alternating

HEAVY = {"msgspec", "typing", "contextlib", "re", "site", "asyncio", "podgpu.model", "ctypes.util"}
LOADED = "import sys; sys.path.append(sys.argv[1]); import {}, ctypes; print(*sys.modules)"
LATE = """
from podgpu.sources.switches import child
child.MOST_BYTES = {most}
reader = child.CardLogReader(0)
reader.drain()
print([(len(records), dropped) for records, dropped in reader.answer()[-1]])
"""
VALUES = st.recursive(
    st.integers(-(2**63), 2**63 - 1) | st.text(max_size=9) | st.binary(max_size=9),
    lambda values: st.lists(values, max_size=4),
    max_leaves=12,
)


def test_it_loads_nothing_heavy() -> None:
    """Modules are nearly all of its memory."""
    code = LOADED.format("podgpu.sources.switches.child")
    command = [sys.executable, "-S", "-P", "-c", code, child_process._FOLDER]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "podgpu.sources.switches.driver" in loaded
    assert not HEAVY.intersection(loaded)


@given(VALUES)
def test_what_it_writes_is_message_pack(value: object) -> None:
    assert msgspec.msgpack.decode(packed(value)) == value


def test_records_that_nobody_takes_are_lost_and_counted(node: SwitchNode) -> None:
    node.script(begin_ago_ns=AGO_NS)
    node.play(alternating(time.time_ns() - 10_000_000_000, number=50))
    kept, lost = (run(node, LATE.format(most=most)).stdout.strip() for most in (3200, 3199))
    assert (kept, lost) == ("[(3200, 0)]", "[(0, 100)]")
