"""GPM's glimpses of the card, ten a second, as the sampler takes them."""

import time
from threading import Event, Thread
from typing import Self

import pynvml

from podgpu.sources.nvml.child import BUSY_SAMPLE_SECONDS
from podgpu.sources.nvml.gpm import BusySampler
from podgpu.sources.nvml.handle import CallTracker, Handle
from podgpu.sources.nvml.window_split import BusySample


class Pulsing:
    """Records from entering to leaving."""

    def __init__(self) -> None:
        self.glimpses: list[BusySample] = []
        self.cpu_ms = 0.0  # for each second
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
        busy_sampler = BusySampler(Handle(pynvml.nvmlDeviceGetHandleByIndex(0), CallTracker()))
        began = due = time.monotonic()
        while not self._over.wait(max(0.0, due - time.monotonic())):
            busy_sampler.sample()
            self.glimpses += busy_sampler.drain()
            due += BUSY_SAMPLE_SECONDS
        busy_sampler.close()
        self.cpu_ms = 1000 * time.thread_time() / (time.monotonic() - began)
