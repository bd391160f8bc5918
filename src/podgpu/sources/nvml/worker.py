"""A thread for NVML calls, so that a stuck call blocks nothing else."""

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from podgpu.sources.nvml.handle import Journal


class Worker:
    """Runs one task at a time, in order, and puts (worker, result or exception) of each into `results`.

    Only the main thread uses `tasks`, the number of those whose result it has not taken.
    """

    def __init__(self, name: str, results: SimpleQueue[tuple["Worker", Any]]) -> None:
        self.name = name
        self.journal = Journal()
        self.tasks = 0
        self._began = 0.0
        self._queue: SimpleQueue[Callable[[], Any]] = SimpleQueue()
        self._results = results
        threading.Thread(target=self._run, name=name, daemon=True).start()

    @property
    def busy(self) -> bool:
        return self.tasks > 0

    def submit(self, task: Callable[[], Any]) -> None:
        """Start a task, or let it follow the one that runs."""
        if not self.busy:
            self._began = time.monotonic()
        self.tasks += 1
        self._queue.put(task)

    def stuck_in(self) -> tuple[str, float]:
        """Return the call that a busy worker is in, and the seconds since it has been busy."""
        call, _ = self.journal.entry
        return call, time.monotonic() - self._began

    def _run(self) -> None:
        while True:
            task = self._queue.get()
            try:
                result = task()
            except Exception as error:
                result = error
            self._results.put((self, result))
