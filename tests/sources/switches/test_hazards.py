"""The fake driver refuses what would harm a real kernel, and a reader that is killed leaves nothing behind."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakeswitches.node import SwitchNode

OPEN = """
from podgpu.sources.switches import layout
{change}
from podgpu.sources.switches.driver import CardLog
CardLog(0)
"""
KILL = """
import os, random, signal, sys, time
from podgpu.sources.switches.child import CardLogReader

chance, reading = random.Random(17), 0
before = len(os.listdir("/proc/self/fd"))
for turn in range(int(sys.argv[1])):
    inlet, outlet = os.pipe()
    pid = os.fork()
    if not pid:
        reader = CardLogReader(0)
        os.write(outlet, b"o")
        while True:
            reader.answer()
    os.close(outlet)
    if turn % 2:
        reading += os.read(inlet, 1) == b"o"
    time.sleep(chance.uniform(0, 0.004))
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL, status
    os.close(inlet)
assert len(os.listdir("/proc/self/fd")) == before
print(reading)
"""


def run(node: SwitchNode, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("change", "hazard"),
    [
        ("layout.RECORD_BYTES = 24", "records of less than 32 bytes"),
        ("layout.SUBDEVICE_HANDLE = 0", "an object without parent, handle or parameters"),
        (
            "made = layout.event_buffer; layout.event_buffer = lambda: made()[:52] + bytes(4) + made()[56:]",
            "a subdevice of 0",
        ),
        (
            "made = layout.event_buffer; layout.event_buffer = lambda: made()[:40] + b'1' * 8 + made()[48:]",
            "a notification",
        ),
        ("layout.TELL = layout.ENABLE = 0x90CD0104", "a flush, which slows tenants down"),
    ],
)
def test_the_fake_driver_notices_what_would_harm_a_real_one(
    preload: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, hazard: str
) -> None:
    node = SwitchNode(tmp_path / "dev", preload)
    for name, value in node.environment.items():
        monkeypatch.setenv(name, value)
    done = run(node, OPEN.format(change=change))
    assert done.returncode < 0
    assert f"HAZARD {hazard}" in node.calls()


def test_hundreds_of_readers_killed_on_the_way_leave_nothing_behind(node: SwitchNode) -> None:
    done = run(node, KILL, "300")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 150  # the others are killed while they start or open the log
    assert not node.is_bound()
