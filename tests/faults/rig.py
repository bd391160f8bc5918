"""A node whose kubelet and driver can break, an agent beside it, and what must hold whatever breaks."""

import asyncio
import math
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.agent.rig import RunningAgent, running_agent
from tests.fakekubelet.kubelet import FakeKubelet, kubelet_root
from tests.fakenvml.fake_node import FakeNode, h200
from tests.faults.plays import Play, sound

SLACK = 12  # descriptors and threads that come and go
Counts = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Node:
    """A kubelet in a thread of its own, and an agent beside it."""

    def __init__(self, root: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.kubelet = FakeKubelet(root, replies=sound())
        self._do(self.kubelet.start())

    def _do(self, work: Coroutine[None, None, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self.loop).result(10)

    def breaks(self, play: Play) -> None:
        self.kubelet.replies = sound() | play.kubelet()
        if play.kubelet_is_away:
            self._do(self.kubelet.stop())

    def mends(self, play: Play) -> None:
        self.kubelet.replies = sound()
        if play.kubelet_is_away:
            self._do(self.kubelet.start())

    def close(self) -> None:
        self._do(self.kubelet.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5)
        self.loop.close()


@contextmanager
def node() -> Iterator[Node]:
    with kubelet_root() as root:
        made = Node(root)
        try:
            yield made
        finally:
            made.close()


def agent_beside(
    node: Node, folder: Path, library: Path, faults: Play | None = None
) -> AbstractContextManager[RunningAgent]:
    cards = FakeNode([h200(number) for number in range(2)])
    cards.faults = list(faults.driver) if faults else []
    flags = [f"--path.kubelet={node.kubelet.root}", "--kube.api=off"]
    return running_agent(cards, folder, library, flags=flags)


def counters(agent: RunningAgent) -> Counts:
    """Read the page, and check that it came in time and makes sense."""
    began = time.monotonic()
    series = agent.series()
    assert time.monotonic() - began < 1.0, "U1"
    values = [value for samples in series.values() for _, value in samples]
    assert all(map(math.isfinite, values)), "U4"
    labelled = [
        (name, tuple(sorted(labels.items()))) for name, samples in series.items() for labels, _ in samples
    ]
    assert len(set(labelled)) == len(labelled), "U4"
    assert agent.request("/-/healthy")[0] == 200, "U9"
    _check_balance(series)
    return {
        (name, tuple(sorted(labels.items()))): value
        for name, samples in series.items()
        if name.endswith("_total")
        for labels, value in samples
    }


def _check_balance(series: dict[str, list[tuple[dict[str, str], float]]]) -> None:
    def total(name: str) -> float:
        return sum(value for _, value in series.get(name, []))

    parts = ("podgpu_container_energy_joules_total", "podgpu_unattributed_energy_joules_total")
    booked = total("podgpu_gpu_booked_energy_joules_total")
    assert sum(map(total, parts)) <= booked + 0.01, "U6"


def no_counter_fell(before: Counts, after: Counts) -> None:
    assert [key for key in before.keys() & after.keys() if after[key] < before[key]] == [], "U5"


def pieces(agent: RunningAgent) -> int:
    own = Path(f"/proc/{agent.process.pid}")
    return sum(1 for folder in ("fd", "task") for _ in (own / folder).iterdir()) + len(agent.children())


def is_shown(agent: RunningAgent, play: Play) -> bool:
    name, labels, value = play.shows
    return agent.value(name, **labels) == value


def is_well(agent: RunningAgent) -> bool:
    ups = [value for _, value in agent.series().get("podgpu_gpu_up", [])]
    return ups == [1.0, 1.0] and agent.value("podgpu_source_up", source="podresources") == 1.0
