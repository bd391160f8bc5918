"""What agents published, and when."""

import json
from collections.abc import Mapping
from threading import Event, Thread
from typing import Any, Self
from urllib.request import urlopen

from tests.e2e.rig import Demo
from tests.patience import PATIENCE
from tests.serve.test_node_events import laid_upon


class Recorder:
    """Keeps every snapshot that the agents publish, by node and time.

    An event stream has them all, even if this process is not given a core for a while.
    """

    def __init__(self, agents: Mapping[str, Demo]) -> None:
        self.found: dict[tuple[str, float], Any] = {}
        self._over = Event()
        self._threads = [Thread(target=self._follow, args=each) for each in agents.items()]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def at(self, node: str, taken_at: float) -> Any | None:
        """VictoriaMetrics rounds long numbers, so times are only nearly the same."""
        times = [at for name, at in list(self.found) if name == node and abs(at - taken_at) < 1e-3]
        return self.found[node, times[0]] if times else None

    def _follow(self, node: str, agent: Demo) -> None:
        kind, document = "", None
        with urlopen(f"{agent.urls['native']}/api/v1/events", timeout=PATIENCE) as stream:
            for line in stream:
                if self._over.is_set():
                    return
                name, _, text = line.decode().rstrip("\n").partition(": ")
                if name == "event":
                    kind = text
                elif name == "data":
                    data = json.loads(text)
                    document = data if kind == "full" else laid_upon(document, data)
                    self.found[node, document["taken_at"]] = document
