"""Whose processes are, and what they show about the node."""

from pathlib import Path

from msgspec.structs import replace

from podgpu.agent.owners import Owners
from podgpu.host.procfs import Procfs
from podgpu.model import Device, Gpu, Pod, Process
from tests.agent.stage import write_proc
from tests.agent.test_attribution import OTHER, UID, cgroup, pod

CARD = Device(gpu=Gpu(uuid="GPU-1", index=0), at=1e9, processes=(Process(pid=40, kinds=("compute",)),))


def paths(owners: Owners, *pods: Pod) -> list[str]:
    return [one.cgroup for each in pods for one in owners.placed(each).containers]


def test_one_process_shows_the_cgroups_of_all_containers(tmp_path: Path) -> None:
    busy, still = replace(pod(), qos="guaranteed"), replace(pod(OTHER, "still", "b"), qos="besteffort")
    unclear = pod("99999999-2222-3333-4444-666666666666", "unclear", "c")  # nobody says its QoS
    owners = Owners(Procfs(tmp_path), None, books_outsiders=False)
    assert paths(owners, busy, still) == ["", ""]
    write_proc(tmp_path, 40, cgroup(UID, "a"))
    owners.find([CARD], (busy, still))
    shown = [f"/kubepods/pod{UID}/{'a' * 64}", f"/kubepods/besteffort/pod{OTHER}/{'b' * 64}", ""]
    assert paths(owners, busy, still, unclear) == shown
    owners.find([replace(CARD, processes=())], (busy, still))
    assert paths(owners, busy, still, unclear) == shown  # labels stay when the process has ended


def test_a_static_pod_is_named_by_its_hash(tmp_path: Path) -> None:
    static = replace(pod(), qos="burstable", static_hash="f" * 32)
    owners = Owners(Procfs(tmp_path), None, books_outsiders=False)
    write_proc(tmp_path, 40, cgroup("f" * 32, "a"))
    owners.find([CARD], (static,))
    assert paths(owners, static) == [f"/kubepods/burstable/pod{'f' * 32}/{'a' * 64}"]


def test_a_cgroup_of_a_pod_that_nobody_lists_shows_nothing(tmp_path: Path) -> None:
    listed = replace(pod(OTHER, "other", "b"), qos="burstable")
    owners = Owners(Procfs(tmp_path), None, books_outsiders=False)
    write_proc(tmp_path, 40, cgroup(UID, "a"))
    owners.find([CARD], (listed,))
    assert paths(owners, listed) == [""]
