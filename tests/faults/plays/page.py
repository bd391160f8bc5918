"""F: a page that grows, or contradicts itself."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.fakekubelet.kubelet import Reply
from tests.fakekubelet.rig import given
from tests.fakenvml.fake_node import grows, h200, make_processes, typed
from tests.faults.node import DEVICES, Node
from tests.faults.page import Page
from tests.faults.play import Play
from tests.faults.props.tenants import CARD
from tests.faults.signs import survived

MOST = 400  # series
LOTS = 1000  # processes
NOBODY = 4_000_000  # the PID of no process
ENERGY, POWER, TEMPERATURE = 83, 186, 82  # the driver's numbers of these fields


@contextmanager
def given_twice(node: Node) -> Iterator[None]:
    """The driver has two cards with the same UUID, and the kubelet lists it twice for the same container."""
    own, node.driver.gpus[1].uuid = node.driver.gpus[1].uuid, CARD
    node.kubelet.replies[DEVICES] = Reply(given(CARD.encode(), CARD.encode()) * 2)
    node.drive()
    yield
    node.driver.gpus[1].uuid = own
    node.kubelet.replies[DEVICES] = Reply(given(CARD.encode()))
    node.drive()


@contextmanager
def crowd(node: Node) -> Iterator[None]:
    node.driver.gpus[1].processes = make_processes(LOTS, first_pid=NOBODY, memory=1 << 10, sm=0)
    node.drive()
    yield
    node.driver.gpus[1].processes = []
    node.drive()


def few_series(_: Node) -> Sequence[str]:
    return ["--series.level=process", f"--series.limit={MOST}"]


def is_cut(now: Page, before: Page) -> bool:
    name = "podgpu_series_dropped_total"
    return (
        (now.value("podgpu_series") or 0) > LOTS
        and now.total(name) > before.total(name)
        and len(now.samples) <= MOST
        and now.value("podgpu_up") == 1
    )


@contextmanager
def other_types(node: Node) -> Iterator[None]:
    """The driver answers with other types of numbers than before."""
    own = [dict(gpu.fields) for gpu in node.driver.gpus]
    for gpu in node.driver.gpus:
        gpu.fields[ENERGY] = typed(grows(10**9, 690_375), "double")
        gpu.fields[POWER] = typed(691_220, "s64")
        gpu.fields[TEMPERATURE] = typed(52, "int")
    node.drive()
    yield
    for gpu, fields in zip(node.driver.gpus, own, strict=True):
        gpu.fields = fields
    node.drive()


PLAYS: tuple[Play, ...] = (
    Play(
        id="F4",
        what="the same card is listed twice",
        fault=given_twice,
        shows=lambda now, _: (
            now.values("podgpu_gpu_up", uuid=CARD) == [1]
            and now.value("podgpu_gpu_up", uuid=h200(1).uuid) in (None, 0)
            and now.value("podgpu_container_allocated_ratio", pod="p") == 1
        ),
    ),
    Play(
        id="F5",
        what="there are more series than a page may have",
        flags=few_series,
        fault=crowd,
        shows=is_cut,
    ),
    Play(
        id="F6",
        what="the driver changes the types of its numbers",
        fault=other_types,
        shows=survived(lambda now: now.value("podgpu_gpu_temperature_celsius", gpu="0", sensor="memory") == 52),
    ),
)
