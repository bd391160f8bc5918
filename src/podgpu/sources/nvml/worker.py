"""A thread for NVML calls, so that a stuck call blocks nothing else."""

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from podgpu.sources.nvml.handle import Journal


class Worker:
    """Runs one task at a time and puts (worker, result or exception) into `results`.

    Only the main thread uses `busy`: it sets it with a task and clears it when it takes the result.
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
        """Start a task. The worker must not be busy."""
        self.busy = True
        self._began = time.monotonic()
        self._tasks.put(task)

    def stuck_in(self) -> tuple[str, float]:
        """Return the call that a busy worker is in, and the seconds since its task began."""
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
