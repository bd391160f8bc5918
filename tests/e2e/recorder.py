"""What agents published, and when."""

from collections.abc import Mapping
from threading import Event, Thread
from typing import Any, Self

from tests.e2e.rig import Demo


class Recorder:
    """Keeps every snapshot that the agents publish, by node and time."""

    def __init__(self, agents: Mapping[str, Demo]) -> None:
        self._agents = agents
        self.found: dict[tuple[str, float], Any] = {}
        self._over = Event()
        self._thread = Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def at(self, node: str, taken_at: float) -> Any | None:
        """VictoriaMetrics rounds long numbers, so times are only nearly the same."""
        times = [at for name, at in list(self.found) if name == node and abs(at - taken_at) < 1e-3]
        return self.found[node, times[0]] if times else None

    def _run(self) -> None:
        while not self._over.wait(0.15):
            for node, agent in self._agents.items():
                snapshot = agent.snapshot()
                self.found[node, snapshot["taken_at"]] = snapshot
