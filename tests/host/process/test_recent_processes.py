"""Processes that end between two readings are remembered while strangers are about."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from math import inf
from pathlib import Path

import pytest

from podgpu.host.procfs import Procfs
from podgpu.host.recent_processes import (
    KEPT_SECONDS,
    MOST_KNOWN,
    SETTLED_SECONDS,
    SWEEP_SECONDS,
    WATCHED_SECONDS,
    RecentProcesses,
)
from tests.host.test_procfs import IN_OTHER_POD, IN_POD, OTHER_POD, POD, Clock, Tree
from tests.patience import PATIENCE, until

HOST = "0::/system.slice/containerd.service\n"


class Node:
    """A made-up /proc whose processes are numbered in order, and a watch over it."""

    def __init__(self, root: Path, *, only_pods: bool = True, interval: float = 5.0) -> None:
        self.tree, self.clock = Tree(root), Clock()
        self.recent = RecentProcesses(
            Procfs(root, self.clock), interval=interval, only_pods=only_pods, clock=self.clock
        )
        self.number(100)
        self.tree.file("sys/kernel/pid_max", "1000\n")
        self.recent.look()

    def number(self, newest: int) -> None:
        """Let that be the number that the kernel gave out last."""
        self.tree.file("loadavg", f"0.07 0.10 0.09 1/180 {newest}\n")

    def look(self, newest: int) -> None:
        self.number(newest)
        self.recent.look()

    def pod(self, pid: int, seen_at: float = inf) -> str | None:
        holder = self.recent.holder(pid, seen_at)
        return holder.owner.pod_uid if holder and holder.owner else None


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_process_that_has_ended_is_still_whose_it_was(node: Node) -> None:
    node.tree.process(103, IN_POD)
    node.look(105)
    node.tree.exit(103)
    node.look(107)
    assert node.pod(103) == POD
    assert node.recent.holder(104, inf) is None


def test_whoever_was_there_before_the_watch_is_known_too(tmp_path: Path) -> None:
    Tree(tmp_path).process(7, IN_POD)
    assert Node(tmp_path).pod(7) == POD


def test_one_that_began_after_the_reading_is_not_meant(node: Node) -> None:
    node.tree.process(103, IN_POD, start=1 << 40)
    node.look(103)
    assert node.pod(103) == POD
    assert node.pod(103, time.monotonic()) is None


def test_numbers_begin_anew_after_the_largest(node: Node) -> None:
    for pid, cgroup in ((1000, IN_POD), (2, IN_OTHER_POD)):
        node.tree.process(pid, cgroup)
    node.look(3)
    assert (node.pod(1000), node.pod(2)) == (POD, OTHER_POD)


def test_a_number_that_two_owners_had_proves_nothing(node: Node) -> None:
    node.tree.process(103, IN_POD, start=10)
    node.look(103)
    node.tree.process(103, IN_OTHER_POD, start=20)
    node.look(102)  # once around
    assert node.recent.is_disputed(103) is False
    node.look(103)
    assert (node.recent.is_disputed(103), node.pod(103)) == (True, None)


def test_on_a_node_of_a_cluster_a_number_that_came_to_the_host_proves_nothing(node: Node) -> None:
    node.tree.process(103, IN_POD, start=10)
    node.look(103)
    node.look(102)
    node.tree.process(103, HOST, start=20)
    node.look(103)
    assert node.recent.is_disputed(103)


def test_a_number_that_was_given_out_anew_and_not_looked_at_in_time_proves_nothing(node: Node) -> None:
    node.tree.process(103, IN_POD)
    node.look(103)
    node.tree.exit(103)
    node.look(102)  # once around
    assert node.pod(103) == POD
    node.look(110)
    assert (node.recent.is_disputed(103), node.pod(103)) == (True, None)


def test_a_process_that_lives_keeps_its_number_when_the_kernel_comes_by(node: Node) -> None:
    node.tree.process(103, IN_POD)
    node.look(103)
    node.look(102)
    node.look(110)
    node.tree.exit(103)
    assert (node.recent.is_disputed(103), node.pod(103)) == (False, POD)


def test_one_owner_may_have_a_number_twice(node: Node) -> None:
    node.tree.process(103, IN_POD, start=10)
    node.look(103)
    node.tree.process(103, IN_POD, start=20)
    node.look(102)
    node.look(103)
    assert node.pod(103) == POD


def test_a_process_that_its_runtime_moves_is_looked_at_again(node: Node) -> None:
    node.tree.process(103, HOST)
    node.look(103)
    assert node.recent.holder(103, inf) is None
    node.tree.file("103/cgroup", IN_POD)
    node.clock.now += SETTLED_SECONDS
    node.look(103)
    assert node.pod(103) == POD


def test_without_kubernetes_everybody_is_remembered(tmp_path: Path) -> None:
    node = Node(tmp_path, only_pods=False)
    node.tree.process(103, HOST)
    node.look(103)
    holder = node.recent.holder(103, inf)
    assert holder and (holder.kind, holder.user) == ("host", os.geteuid())


def test_in_a_crowd_those_who_live_are_looked_at(node: Node) -> None:
    node.tree.file("sys/kernel/pid_max", "4194304\n")
    node.tree.process(200_000, IN_POD)
    node.look(300_000)
    assert node.pod(200_000) == POD


def test_a_look_takes_no_longer_than_a_few_milliseconds_and_the_next_one_goes_on(node: Node) -> None:
    pids = range(101, 131)
    for pid in pids:
        node.tree.process(pid, IN_POD)
    node.clock.step = 0.001
    node.look(130)
    first = sum(node.pod(pid) == POD for pid in pids)
    assert 0 < first < 10
    for _ in pids:
        node.look(130)
    assert all(node.pod(pid) == POD for pid in pids)


def test_those_who_are_gone_for_long_are_forgotten(node: Node) -> None:
    for pid in (103, 104):
        node.tree.process(pid, IN_POD)
    node.look(104)
    node.tree.exit(104)
    for _ in range(round(KEPT_SECONDS / SWEEP_SECONDS) + 1):
        node.clock.now += SWEEP_SECONDS
        node.look(104)
    assert (node.pod(103), node.pod(104)) == (POD, None)


def test_those_who_ended_since_the_last_reading_are_kept_however_long_ago_it_was(tmp_path: Path) -> None:
    node = Node(tmp_path, interval=300.0)
    node.tree.process(104, IN_POD)
    node.look(104)
    node.tree.exit(104)
    for _ in range(round(300 / SWEEP_SECONDS)):
        node.clock.now += SWEEP_SECONDS
        node.look(104)
    assert node.pod(104) == POD


def test_memory_has_an_end(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_KNOWN < 50_000
    monkeypatch.setattr("podgpu.host.recent_processes.MOST_KNOWN", 3)
    for pid in range(101, 106):
        node.tree.process(pid, IN_POD)
    node.look(105)
    assert [node.pod(pid) for pid in range(101, 106)] == [None, None, POD, POD, POD]


def test_where_the_kernel_does_not_number_nothing_is_looked_at(node: Node) -> None:
    node.tree.process(103, IN_POD)
    (node.tree.root / "loadavg").unlink()
    node.recent.look()
    assert node.pod(103) is None


async def test_it_is_on_only_while_strangers_are_expected(tmp_path: Path) -> None:
    tree, clock = Tree(tmp_path), Clock()
    tree.file("loadavg", "0 0 0 1/1 7\n")
    tree.process(7, IN_POD)
    recent = RecentProcesses(Procfs(tmp_path, clock), interval=5.0, only_pods=True, clock=clock)
    running = asyncio.create_task(recent.run())
    await asyncio.sleep(0)
    assert recent.holder(7, inf) is None
    recent.expect()
    async with asyncio.timeout(PATIENCE):
        while recent.holder(7, inf) is None:  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0.01)
        clock.now += WATCHED_SECONDS
        while recent.holder(7, inf):  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0.01)
    running.cancel()


async def test_processes_are_listed_in_a_thread_however_many_a_tenant_has(tmp_path: Path) -> None:
    tree, listed_in = Tree(tmp_path), []
    tree.file("loadavg", "0 0 0 1/1 7\n")

    class Listed(Procfs):
        def pids(self) -> list[int]:
            listed_in.append(threading.get_ident())
            return super().pids()

    recent = RecentProcesses(Listed(tmp_path), interval=5.0, only_pods=True)
    running = asyncio.create_task(recent.run())
    recent.expect()
    await until(lambda: bool(listed_in))
    running.cancel()
    assert threading.get_ident() not in listed_in


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    script = "import threading, time; threading.Thread(target=time.sleep, args=(600,)).start(); print(flush=True)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline()
        yield process
        process.kill()


def test_the_kernel_numbers_processes_in_order_and_a_thread_is_none(child: subprocess.Popen[bytes]) -> None:
    procfs = Procfs(Path("/proc"))
    newest = procfs.newest_pid()
    assert newest is not None and child.pid in procfs.pids()
    assert newest >= child.pid or newest < 1000  # unless they have just begun anew
    assert procfs.largest_pid() >= newest
    threads = [int(path.name) for path in Path(f"/proc/{child.pid}/task").iterdir()]
    assert len(threads) == 2
    found = [thread for thread in threads if procfs.newcomer(thread)]
    assert found in ([child.pid], [])  # none where the tests run in an unknown cgroup


def test_a_crowd_of_new_numbers_takes_those_from_everybody_who_had_them(node: Node) -> None:
    """Also if the kernel is told to begin anew, which costs no more than a list of who lives."""
    node.tree.file("sys/kernel/pid_max", "4194304\n")
    for pid in (101, 103):
        node.tree.process(pid, IN_POD)
    node.look(103)
    node.tree.exit(103)
    node.look(50)
    assert (node.pod(101), node.pod(103)) == (POD, POD)
    node.look(2000)
    assert (node.pod(101), node.pod(103)) == (POD, None)
