"""How a test waits: for the very thing it asserts, and long. It takes as long as that thing takes.

A limit is only met by what would never come, so it is far beyond what a slow and busy machine needs.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 120.0  # seconds
_LOOK_SECONDS = 0.005
_TURNS = 200

# The program, except that it has long to stop: one that is cut short says so, or exits with 1. That has its own tests.
PODGPU = (
    sys.executable,
    "-c",
    f"""
import sys
from podgpu.cli import _process
_process.SERVER_SECONDS = _process.LAST_RESORT_SECONDS = {PATIENCE}
from podgpu.cli.main import main
sys.exit(main())
""",
)


class LoopClock:
    """The clock of the running event loop, which a test may set ahead: what is due by then happens at once.

    So a deadline can be long enough for any machine, and still be seen to pass or not.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        real, self._ahead = loop.time, 0.0
        loop.time = lambda: real() + self._ahead  # type: ignore[method-assign]

    def set_ahead(self, seconds: float) -> None:
        self._ahead += seconds


async def until(true: Callable[[], object]) -> None:
    """Wait for what nobody can signal. It is looked at once more if this process itself was held up for long."""
    began = time.monotonic()
    now = began
    while not true():
        assert now < began + PATIENCE, f"not within {PATIENCE} s"
        now = time.monotonic()
        await asyncio.sleep(_LOOK_SECONDS)


async def settle() -> None:
    """Let everything happen that needs no time: what is sent on this machine is there in the loop's next turn."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)


def wait_until(true: Callable[[], object], look_seconds: float = _LOOK_SECONDS) -> None:
    """The same where there is no event loop."""
    began = time.monotonic()
    now = began
    while not true():
        assert now < began + PATIENCE, f"not within {PATIENCE} s"
        now = time.monotonic()
        time.sleep(look_seconds)


def has_ended(pid: int) -> bool:
    """Whether a process is gone. One that nobody has waited for yet is gone, too."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
