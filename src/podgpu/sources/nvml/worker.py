"""A thread that runs NVML calls one after another, so that one stuck call blocks nothing else."""

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from podgpu.sources.nvml.handle import Journal


class Worker:
    """Runs one task at a time and puts (worker, result or exception) into `results`.

    `busy` belongs to the main thread: set when a task is given, cleared when its result is taken.
    """

    def __init__(self, name: str, results: SimpleQueue[tuple["Worker", Any]]) -> None:
        self.name = name
        self.journal = Journal()
        self.busy = False
        self._began = 0.0
        self._tasks: SimpleQueue[Callable[[], Any]] = SimpleQueue()
        self._results = results
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def submit(self, task: Callable[[], Any]) -> None:
        """Start a task; only for a worker that is not busy."""
        self.busy = True
        self._began = time.monotonic()
        self._tasks.put(task)

    def stuck_in(self) -> tuple[str, float]:
        """Name the call a busy worker is in, and for how long it has been at its task."""
        call, _ = self.journal.entry
        return call, time.monotonic() - self._began

    def _run(self) -> None:
        while True:
            task = self._tasks.get()
            try:
                result = task()
            except Exception as error:
                result = error
            self._results.put((self, result))
