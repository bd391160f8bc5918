"""C: a container starts again while nobody tells so."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.fakekubelet.kubelet import POD_RESOURCES
from tests.fakenvml.fake_node import FakeProcess
from tests.faults.node import Node, uid_of
from tests.faults.page import Page
from tests.faults.play import Fault, Phase, Play
from tests.faults.plays.api import SERVER, away, pod
from tests.faults.signs import both, part_down, survived

# A PID that nobody has, the container's id, and the bytes that the process holds.
BEFORE, AFTER = (4_000_000, "a" * 64, 64 << 20), (4_000_001, "b" * 64, 96 << 20)
SIDE = "d" * 64


def told(*containers: tuple[str, str]) -> dict[str, Any]:
    """The pod as the API server has it, with its containers' ids."""
    item = pod("p")
    item["spec"]["containers"] = [{"name": name} for name, _ in containers]
    item["status"]["containerStatuses"] = [
        {"name": name, "containerID": f"containerd://{id_}", "state": {"running": {}}} for name, id_ in containers
    ]
    return item


def alone(node: Node) -> Sequence[str]:
    """The pod has one container, and there are no log folders."""
    return _ready(node, told(("c", BEFORE[1])))


def beside_another(node: Node) -> Sequence[str]:
    """The pod has two containers, and log folders."""
    flags = _ready(node, told(("c", BEFORE[1]), ("side", SIDE)))
    logs = node.folder / "log"
    (logs / "containers").mkdir(parents=True)
    for name, id_ in (("c", BEFORE[1]), ("side", SIDE)):
        (logs / "pods" / f"n_p_{uid_of('p')}" / name).mkdir(parents=True)
        _link(node, name, id_, 0)
    return (*flags, f"--path.logs={logs}")


def _ready(node: Node, item: dict[str, Any]) -> Sequence[str]:
    node.keep_sockets(POD_RESOURCES)
    node.api.pods = [item]
    _run(node, *BEFORE)
    return (f"--kube.api={node.api.url}", f"--path.procfs={node.processes.folder}")


def _run(node: Node, pid: int, id_: str, used: int) -> None:
    node.processes.write(pid, f"0::/kubepods/burstable/pod{uid_of('p')}/{id_}\n")
    node.driver.gpus[0].processes = [FakeProcess(pid, used, ("compute",), sm=40)]
    node.drive()


def _link(node: Node, name: str, id_: str, restarts: int) -> None:
    target = f"/var/log/pods/n_p_{uid_of('p')}/{name}/{restarts}.log"
    (node.folder / "log" / "containers" / f"p_n_{name}-{id_}.log").symlink_to(target)


@contextmanager
def started_again(node: Node) -> Iterator[None]:
    """The API server still has the previous id."""
    node.processes.erase(BEFORE[0])
    if (node.folder / "log").exists():
        _link(node, "c", AFTER[1], 1)
    _run(node, *AFTER)
    yield
    node.processes.erase(AFTER[0])
    _run(node, *BEFORE)


def without_server(fault: Fault) -> Fault:
    @contextmanager
    def together(node: Node) -> Iterator[None]:
        with away(node), fault(node):
            yield

    return together


def books(used: int) -> Callable[[Page], bool]:
    """Whether the container has what its process holds, and nobody else has any of it."""

    def is_booked(page: Page) -> bool:
        held = page.value("podgpu_container_memory_used_bytes", pod="p", container="c")
        return held == used and not page.value("podgpu_unattributed_processes", gpu="0", reason="unknown")

    return is_booked


BOOKED, BOOKED_AGAIN = books(BEFORE[2]), books(AFTER[2])
NOT_KNOWN = {Phase.START: "an agent that has never seen the API server knows no pods"}

PLAYS = (
    Play(
        id="C10",
        what="a container starts again, and the API server is behind",
        fault=started_again,
        shows=survived(BOOKED_AGAIN),
        well=BOOKED,
        flags=alone,
    ),
    Play(
        id="C10.away",
        what="a container starts again, and the API server is away",
        fault=without_server(started_again),
        shows=both(part_down(SERVER, "unreachable"), lambda now, _: BOOKED_AGAIN(now)),
        well=BOOKED,
        flags=alone,
        left_out=NOT_KNOWN,
    ),
    Play(
        id="C10.folders",
        what="one of two containers starts again, the API server is behind, and the log folders tell",
        fault=started_again,
        shows=survived(BOOKED_AGAIN),
        well=BOOKED,
        flags=beside_another,
    ),
    Play(
        id="C10.folders-away",
        what="one of two containers starts again, the API server is away, and the log folders tell",
        fault=without_server(started_again),
        shows=both(part_down(SERVER, "unreachable"), lambda now, _: BOOKED_AGAIN(now)),
        well=BOOKED,
        flags=beside_another,
    ),
)
