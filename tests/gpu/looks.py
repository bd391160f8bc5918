"""What the driver says about processes, as it says it: every look, asked for twice as often as they come.

And how busy the card was in each of the driver's windows.
"""

import time
from threading import Event, Thread
from typing import Any, Self

import pynvml

from podgpu.model import BusyWindow
from podgpu.sources.nvml.handle import CallTracker, Handle
from podgpu.sources.nvml.process import DriverWindows

INTERVAL = 0.1
WINDOWS_INTERVAL = 5.0  # the driver keeps those of 14 seconds

# A time, and (pid, stamp, busy percent, memory percent) of each look since the answer before.
Answer = tuple[float, list[tuple[int, int, int, int]]]


class Looks:
    """Records from entering to leaving."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.windows: list[BusyWindow] = []
        self._over = Event()
        self._thread = Thread(target=self._run)

    def __enter__(self) -> Self:
        pynvml.nvmlInit()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        pynvml.nvmlShutdown()

    def _run(self) -> None:
        card = pynvml.nvmlDeviceGetHandleByIndex(0)
        stamp = int(time.time() * 1e6)
        windows, due = DriverWindows(Handle(card, CallTracker())), 0.0
        while not self._over.wait(INTERVAL):
            if time.monotonic() >= due:
                self.windows += windows.read()
                due = time.monotonic() + WINDOWS_INTERVAL
            looks = [look for look in _asked(card, stamp) if look.timeStamp > stamp]
            if looks:
                stamp = max(look.timeStamp for look in looks)
                told = [(look.pid, look.timeStamp, look.smUtil, look.memUtil) for look in looks]
                self.answers.append((time.time(), told))
        self.windows += windows.read()


def _asked(card: Any, stamp: int) -> list[Any]:
    try:
        return list(pynvml.nvmlDeviceGetProcessUtilization(card, stamp))
    except pynvml.NVMLError as error:
        if error.value in (pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_INSUFFICIENT_SIZE):
            return []
        raise
