"""Whose processes are, and what they show about the node."""

import asyncio
import os
import shutil
import threading
from pathlib import Path

from msgspec.structs import replace

from podgpu.agent.owners import NAMED_AT_ONCE, Owners
from podgpu.host.procfs import Procfs
from podgpu.host.recent_processes import RecentProcesses
from podgpu.model import Device, Gpu, Pod, Process
from tests.agent.stage import write_proc
from tests.agent.test_attribution import OTHER, UID, cgroup, pod
from tests.patience import PATIENCE, settle

CARD = Device(gpu=Gpu(uuid="GPU-1", index=0), at=1e9, processes=(Process(pid=40, kinds=("compute",)),))


def paths(owners: Owners, *pods: Pod) -> list[str]:
    return [container.cgroup for each in pods for container in owners.placed(each).containers]


async def test_one_process_shows_the_cgroups_of_all_containers(tmp_path: Path) -> None:
    busy, still = replace(pod(), qos="guaranteed"), replace(pod(OTHER, "still", "b"), qos="besteffort")
    unclear = pod("99999999-2222-3333-4444-666666666666", "unclear", "c")  # nobody says its QoS
    owners = Owners(Procfs(tmp_path), None, books_outsiders=False)
    assert paths(owners, busy, still) == ["", ""]
    write_proc(tmp_path, 40, cgroup(UID, "a"))
    await owners.find([CARD], (busy, still))
    shown = [f"/kubepods/pod{UID}/{'a' * 64}", f"/kubepods/besteffort/pod{OTHER}/{'b' * 64}", ""]
    assert paths(owners, busy, still, unclear) == shown
    await owners.find([replace(CARD, processes=())], (busy, still))
    assert paths(owners, busy, still, unclear) == shown  # labels stay when the process has ended


async def test_a_static_pod_is_named_by_its_hash(tmp_path: Path) -> None:
    static = replace(pod(), qos="burstable", static_hash="f" * 32)
    owners = Owners(Procfs(tmp_path), None, books_outsiders=False)
    write_proc(tmp_path, 40, cgroup("f" * 32, "a"))
    await owners.find([CARD], (static,))
    assert paths(owners, static) == [f"/kubepods/burstable/pod{'f' * 32}/{'a' * 64}"]


async def test_a_cgroup_of_a_pod_that_nobody_lists_shows_nothing(tmp_path: Path) -> None:
    listed = replace(pod(OTHER, "other", "b"), qos="burstable")
    owners = Owners(Procfs(tmp_path), None, books_outsiders=False)
    write_proc(tmp_path, 40, cgroup(UID, "a"))
    await owners.find([CARD], (listed,))
    assert paths(owners, listed) == [""]


ENDED = replace(CARD, processes=(Process(pid=40, sm_busy_us=1000),))


def watched(root: Path) -> tuple[Owners, RecentProcesses]:
    procfs = Procfs(root)
    # A clock that stands still leaves time to read them all, also on a busy machine.
    recent = RecentProcesses(procfs, interval=5.0, only_pods=True, clock=lambda: 0.0)
    return Owners(procfs, None, books_outsiders=False, recent=recent), recent


def given_out(root: Path, pid: int) -> None:
    """Let the kernel say that this PID is the newest."""
    (root / "loadavg").write_text(f"0 0 0 1/1 {pid}\n")


async def test_a_process_that_came_and_went_between_two_readings_is_its_pods(tmp_path: Path) -> None:
    owners, recent = watched(tmp_path)
    given_out(tmp_path, 30)
    recent.look()
    write_proc(tmp_path, 40, cgroup(UID, "a"))
    given_out(tmp_path, 41)
    recent.look()
    shutil.rmtree(tmp_path / "40")
    container = (await owners.find([ENDED], (pod(),)))[40].container
    assert container and container.pod_uid == UID


async def test_one_that_has_ended_is_nobodys_if_its_pid_was_given_out_again(tmp_path: Path) -> None:
    """Also if it was there at the reading before: the samples may name the next one with that PID."""
    owners, recent = watched(tmp_path)
    write_proc(tmp_path, 40, cgroup(UID, "a"))
    given_out(tmp_path, 41)
    recent.look()
    assert (await owners.find([CARD], (pod(),)))[40].container
    shutil.rmtree(tmp_path / "40")
    for newest in (39, 45):  # once around
        given_out(tmp_path, newest)
        recent.look()
    holder = (await owners.find([ENDED], (pod(),)))[40]
    assert (holder.container, holder.reason) == (None, "exited")


SERVED = replace(CARD, processes=(Process(pid=40, kinds=("compute",)), Process(pid=41, kinds=("compute", "mps"))))


def named_like_a_server(root: Path) -> Owners:
    for pid, command in ((1, "init"), (40, "nvidia-cuda-mps"), (41, "python3")):
        write_proc(root, pid, cgroup(UID, "a"), command=command)
    return Owners(Procfs(root), None, books_outsiders=False)


async def test_the_loop_does_not_wait_while_mounts_are_read(tmp_path: Path) -> None:
    """A tenant may have so many that the kernel takes long to list them. Here it takes until the loop had its turn."""
    owners = named_like_a_server(tmp_path)
    os.mkfifo(tmp_path / "40/mountinfo")

    def answer() -> None:
        (tmp_path / "40/mountinfo").write_bytes(b"")

    rescue = threading.Timer(PATIENCE, answer)  # a loop that does wait fails here, and does not hang
    rescue.start()
    finding = asyncio.create_task(owners.find([SERVED], (pod(),)))
    await settle()
    is_free = rescue.is_alive()
    rescue.cancel()
    assert is_free and not finding.done()
    await asyncio.to_thread(answer)
    assert (await finding)[40].mps is None


async def test_mounts_matter_only_beside_clients(tmp_path: Path) -> None:
    owners = named_like_a_server(tmp_path)
    os.mkfifo(tmp_path / "40/mountinfo")  # to read it would never end
    assert (await owners.find([CARD], (pod(),)))[40].mps is None


async def test_other_tasks_get_their_turn_while_a_tenants_processes_are_named(tmp_path: Path) -> None:
    number = 10 * NAMED_AT_ONCE
    for pid in range(1, number + 1):
        write_proc(tmp_path, pid, cgroup(UID, "a"))
    owners = Owners(Procfs(tmp_path), None, books_outsiders=False)
    crowd = replace(CARD, processes=tuple(Process(pid=pid, kinds=("compute",)) for pid in range(1, number + 1)))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    holders = await owners.find([crowd], (pod(),))
    task.cancel()
    assert len(holders) == number
    assert turns >= 10
