"""Finding servers of MPS costs a limited number of steps in each cycle, whatever tenants do."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from podgpu.host import mps
from podgpu.host.procfs import Procfs
from podgpu.model import Holder
from tests.agent.stage import write_proc
from tests.agent.test_attribution import OTHER, UID, cgroup

PIPES = "/run/nvidia/mps"
HOST = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n24 22 0:24 / /run rw - tmpfs tmpfs rw\n"
VOLUME = "/var/lib/kubelet/pods/{0}/volumes/kubernetes.io~empty-dir/v"
# A cycle of a node on which nobody does anything unusual takes a few hundred.
MOST_STEPS = 1_000_000


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Steps:
    def __init__(self) -> None:
        self.lines = 0
        self.mountinfos: list[str] = []


@contextmanager
def counted() -> Iterator[Steps]:
    """Count the lines of the module that are run, and the lists of mounts that are opened."""
    steps = Steps()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != mps.__file__:
            return None
        steps.lines += event == "line"
        if event == "call" and frame.f_code.co_name == "_mountinfo":
            steps.mountinfos.append(Path(frame.f_locals["folder"]).name)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield steps
    finally:
        sys.settrace(before)


class Node:
    """A made-up /proc. Processes have the daemon's name, and mounts of their own unless a namespace is named."""

    def __init__(self, root: Path, host: str = HOST) -> None:
        self.root = root
        self.clock = Clock()
        self.procfs = Procfs(root, self.clock)
        self.pids: list[int] = []
        write_proc(root, 1, "0::/init.scope\n")
        (root / "1/mountinfo").write_text(host)

    def start(self, pid: int, mounts: str, *, pod: str = UID, at: int = 100, namespace: str = "") -> None:
        write_proc(self.root, pid, cgroup(pod, "a"), start=str(at), command=mps.DAEMON)
        (self.root / f"{pid}/mountinfo").write_text(mounts)
        if namespace:
            (self.root / f"{pid}/ns").mkdir()
            (self.root / f"{pid}/ns/mnt").symlink_to(namespace)
        self.pids.append(pid)

    def holders(self) -> list[Holder]:
        return list(self.procfs.holders(self.pids).values())

    def cycle(self) -> dict[int, str | None]:
        return self.procfs.mps(self.holders())


def volumes(number: int) -> str:
    return "".join(f"{place} 22 8:1 {VOLUME} {VOLUME} rw - ext4 d rw\n".format(place) for place in range(number))


def pipes() -> str:
    return "901 900 0:24 /nvidia/mps /mps rw - tmpfs tmpfs rw\n"


def test_mounts_that_lead_nowhere_are_not_compared_with_each_other(tmp_path: Path) -> None:
    node = Node(tmp_path, HOST + volumes(4000))
    for pid in range(100, 124):
        node.start(pid, volumes(4000))
    with counted() as steps:
        assert set(node.cycle().values()) == {None}
    assert steps.lines < MOST_STEPS


def test_however_many_processes_there_are_a_cycle_reads_only_so_many(tmp_path: Path) -> None:
    node = Node(tmp_path)
    for pid in range(100, 1100):
        node.start(pid, volumes(10))
    holders = node.holders()
    found: list[int] = []
    for _ in range(4):
        with counted() as steps:
            found.append(len(node.procfs.mps(holders)))
        assert len(steps.mountinfos) <= mps.PROCESSES_IN_A_CYCLE + 1
    assert found == [256, 512, 768, 1000]
    with counted() as steps:
        assert len(node.procfs.mps(holders)) == 1000
    assert steps.mountinfos == []


def test_long_lists_of_mounts_are_read_in_several_cycles(tmp_path: Path) -> None:
    node = Node(tmp_path)
    long = f"30 22 8:1 /{'x' * 4000} / rw - ext4 d rw\n" * 1000
    for pid in range(100, 120):
        node.start(pid, long)
    for cycle in range(1, 6):
        with counted() as steps:
            assert len(node.cycle()) == 4 * cycle
        assert len(steps.mountinfos) == 4 + 1


def test_processes_with_the_same_mounts_are_read_once(tmp_path: Path) -> None:
    node = Node(tmp_path)
    for pid in range(100, 110):
        node.start(pid, volumes(5) + pipes(), namespace="mnt:[4026532001]")
    node.start(110, volumes(5), namespace="mnt:[4026532002]")
    with counted() as steps:
        assert node.cycle() == dict.fromkeys(range(100, 110), PIPES) | {110: None}
    assert sorted(steps.mountinfos) == ["1", "100", "110"]
    node.start(111, "", namespace="mnt:[4026532001]")
    assert node.cycle()[111] == PIPES


def test_a_crowd_delays_nobody_elses_proof(tmp_path: Path) -> None:
    """The tenant's processes are older, and more come in each cycle."""
    node = Node(tmp_path)
    for pid in range(100, 800):
        node.start(pid, volumes(3), at=50)
    node.start(900, pipes(), pod=OTHER, at=90_000)
    assert node.cycle()[900] == PIPES


def test_another_process_with_the_pid_has_nothing_of_the_first(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.start(100, pipes(), at=50)
    holders = node.holders()
    assert node.procfs.mps(holders) == {100: PIPES}
    stat = tmp_path / "100/stat"
    stat.write_text(stat.read_text().replace(" 50 ", " 70 "))
    (tmp_path / "100/mountinfo").write_text(volumes(1))
    node.clock.now += 3600
    assert node.procfs.mps(holders) == {100: PIPES}  # the first, which has ended
    assert node.cycle() == {100: None}


def test_what_is_mounted_later_is_found_later(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.start(100, volumes(1))
    assert node.cycle() == {100: None}
    (tmp_path / "100/mountinfo").write_text(volumes(1) + pipes())
    assert node.cycle() == {100: None}
    node.clock.now += mps.BELIEVED_SECONDS
    assert node.cycle() == {100: PIPES}
