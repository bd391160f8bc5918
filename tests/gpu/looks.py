"""What the driver says about processes, as it says it: every look, asked for twice as often as they come."""

import time
from threading import Event, Thread
from typing import Any, Self

import pynvml

INTERVAL = 0.1

# A time, and (pid, stamp, busy percent, memory percent) of each look since the answer before.
Answer = tuple[float, list[tuple[int, int, int, int]]]


class Looks:
    """Records from entering to leaving."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
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
        while not self._over.wait(INTERVAL):
            looks = [look for look in _asked(card, stamp) if look.timeStamp > stamp]
            if looks:
                stamp = max(look.timeStamp for look in looks)
                told = [(look.pid, look.timeStamp, look.smUtil, look.memUtil) for look in looks]
                self.answers.append((time.time(), told))


def _asked(card: Any, stamp: int) -> list[Any]:
    try:
        return list(pynvml.nvmlDeviceGetProcessUtilization(card, stamp))
    except pynvml.NVMLError as error:
        if error.value in (pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_INSUFFICIENT_SIZE):
            return []
        raise
