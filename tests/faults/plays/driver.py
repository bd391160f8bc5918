"""A: what goes wrong in a GPU, in its driver and in the driver's library."""

from collections.abc import Iterator
from contextlib import contextmanager

import pynvml

from tests.fakenvml.fake_node import FakeFault
from tests.faults.node import Node
from tests.faults.play import Fault, Play
from tests.faults.signs import card_down


def driver_faults(*faults: FakeFault) -> Fault:
    """Let the library answer, hang or crash like this."""

    @contextmanager
    def fault(node: Node) -> Iterator[None]:
        node.driver.faults = list(faults)
        node.drive()
        yield
        node.driver.faults = []
        node.drive()

    return fault


def answers(code: int, device: int) -> Fault:
    return driver_faults(FakeFault(f"return {code}", device=device))


PLAYS = (
    Play(
        id="A1",
        what="a call hangs on one card",
        fault=driver_faults(FakeFault("hang", call="nvmlDeviceGetMemoryInfo_v2", device=1)),
        shows=card_down(1, "hung"),
    ),
    Play(
        id="A2",
        what="a card falls off the bus",
        fault=answers(pynvml.NVML_ERROR_GPU_IS_LOST, device=1),
        shows=card_down(1, "lost"),
    ),
    Play(
        id="A8",
        what="a card's device node is withdrawn from the agent's cgroup",
        fault=answers(pynvml.NVML_ERROR_UNKNOWN, device=1),
        shows=card_down(1, "unknown_error"),
    ),
)
