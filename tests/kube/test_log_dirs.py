import asyncio
import os
from pathlib import Path

import pytest

from podgpu.kube import log_dirs
from podgpu.kube.log_dirs import LogDirs
from tests.fakeapi.recorded import RECORDED
from tests.patience import until

UID = "04a42512-da73-45a0-91d1-4b3469bce212"
OTHER = "eeffc188-aff2-4611-b421-bbb35128be48"


def rebuild(root: Path) -> None:
    """Make the recorded folders again. The recording ends early; the links name the folders it lacks."""
    here = RECORDED / "kubernetes-1.36.4"
    for line in (here / "var-log-pods.txt").read_text().splitlines():
        if line.startswith("/var/log/pods") and line.endswith(":"):
            (root / line.removeprefix("/var/log/").rstrip(":")).mkdir(parents=True, exist_ok=True)
    (root / "containers").mkdir()
    for line in (here / "var-log-containers.txt").read_text().splitlines():
        name, arrow, target = line.strip().partition(" -> ")
        if arrow:
            (root / "containers" / name).symlink_to(target)
            (root / target.removeprefix("/var/log/")).parent.mkdir(parents=True, exist_ok=True)


def log_folder(root: Path, pod: str, *containers: str) -> None:
    for container in containers:
        (root / "pods" / pod / container).mkdir(parents=True)


def link(root: Path, name: str, target: str) -> None:
    (root / "containers").mkdir(exist_ok=True)
    (root / "containers" / name).symlink_to(f"/var/log/pods/{target}")


async def found(root: Path) -> list[tuple[str, str, str, list[tuple[str, str]]]]:
    logs = LogDirs(root)
    await logs.scan()
    return [
        (pod.namespace, pod.name, pod.uid, [(each.name, each.container_id[:8]) for each in pod.containers])
        for pod in logs.pods() or ()
    ]


async def test_the_recorded_folders_name_the_pods_and_their_newest_containers(tmp_path: Path) -> None:
    rebuild(tmp_path)
    assert await found(tmp_path) == [
        ("team-a", "chat-584ddf76fc-6lg2w", "04a42512-da73-45a0-91d1-4b3469bce212", [("server", "")]),
        ("team-a", "chat-584ddf76fc-89tp6", "ae3ea1e7-254f-4582-8853-5e1b433bbfad", [("server", "")]),
        ("team-a", "chat-584ddf76fc-chpsw", "eeffc188-aff2-4611-b421-bbb35128be48", [("server", "9dabb51d")]),
        ("team-a", "rank-0", "44b55b4d-2283-4e62-a15c-86a2cd05fab7", [("ps", "268a7076")]),
        ("team-a", "rank-0", "7668c4a5-ebb6-4d64-81d8-6fbe1a7e7de3", [("ps", "")]),
        ("team-b", "finetune-mjcqc", "99e8e17d-662d-4af1-93ae-fc65fedf0ac4", [("tune", "0efccca4")]),
        ("team-b", "nightly-manual-22spb", "a929f714-e746-4631-ad63-3234b6484c75", [("tune", "729b298c")]),
        ("team-b", "probe-b8xdx", "c7fd3897-ecdf-4f85-a88e-5ad3c9ae54d7", [("probe", "e7a5dfdd")]),
        ("team-b", "share-1", "f711fe8d-bfe8-4a28-a84b-32564c1ce9c3", [("app", "1c4b48ac")]),
    ]


async def test_the_id_is_that_of_the_last_restart(tmp_path: Path) -> None:
    folder = f"ns_p_{UID}"
    log_folder(tmp_path, folder, "c")
    for restart, digit in ((2, "b"), (10, "c"), (9, "a")):
        link(tmp_path, f"p_ns_c-{digit * 64}.log", f"{folder}/c/{restart}.log")
    assert await found(tmp_path) == [("ns", "p", UID, [("c", "cccccccc")])]


async def test_a_name_cut_at_255_characters_gives_no_id(tmp_path: Path) -> None:
    name = "p" * 180
    folder = f"ns_{name}_{UID}"
    log_folder(tmp_path, folder, "c" * 20)
    link(tmp_path, f"{name}_ns_{'c' * 20}-{'a' * 64}"[:251] + ".log", f"{folder}/{'c' * 20}/0.log")
    assert await found(tmp_path) == [("ns", name, UID, [("c" * 20, "")])]


@pytest.mark.parametrize(
    "target", [f"ns_other_{UID}/c/0.log", f"ns_p_{UID}/d/0.log", f"ns_p_{UID}/c/x.log", "0.log", ".."]
)
async def test_a_link_that_contradicts_its_target_gives_no_id(tmp_path: Path, target: str) -> None:
    log_folder(tmp_path, f"ns_p_{UID}", "c")
    log_folder(tmp_path, f"ns_other_{UID}", "c")
    link(tmp_path, f"p_ns_c-{'a' * 64}.log", target)
    assert all(not container_id for *_, containers in await found(tmp_path) for _, container_id in containers)


async def test_a_static_pod_goes_by_its_hash(tmp_path: Path) -> None:
    digest = "8cceda71" * 4
    log_folder(tmp_path, f"kube-system_probe-node_{digest}", "main")
    logs = LogDirs(tmp_path)
    await logs.scan()
    (pod,) = logs.pods() or ()
    assert (pod.uid, pod.static_hash) == (digest, digest)


async def test_names_the_kubelet_cannot_have_written_are_skipped_and_counted(tmp_path: Path) -> None:
    log_folder(tmp_path, f"ns_p_{UID}", "good", "Bad", "a_b")
    for name in (f"ns_p_{UID}_x", "ns_p", f"NS_p_{UID}", f"ns_-p_{UID}", "ns_p_nouid", 'a"b\n_p_x'):
        (tmp_path / "pods" / name).mkdir()
    os.mkdir(os.fsencode(tmp_path / "pods") + b"/ns_\xff_" + UID.encode())  # noqa: PTH102 - no Path has such bytes
    (tmp_path / "pods" / f"ns_link_{UID}").symlink_to(tmp_path)
    (tmp_path / "pods" / f"ns_file_{UID}").touch()
    logs = LogDirs(tmp_path)
    await logs.scan()
    assert [[each.name for each in pod.containers] for pod in logs.pods() or ()] == [["good"]]
    assert logs.errors["name"] == 9


async def test_a_name_that_makes_no_sense_is_counted_once_for_as_long_as_it_lies_there(
    tmp_path: Path,
) -> None:
    log_folder(tmp_path, f"ns_p_{UID}", "good", "Bad")
    odd = tmp_path / "pods" / "odd"
    odd.mkdir()
    logs = LogDirs(tmp_path)
    for _ in range(3):
        await logs.scan()
    assert logs.errors["name"] == 2
    odd.rmdir()
    (tmp_path / "pods" / "other").mkdir()
    await logs.scan()
    assert logs.errors["name"] == 3
    odd.mkdir()
    await logs.scan()
    assert logs.errors["name"] == 4


async def test_a_flood_is_counted_once_for_as_long_as_it_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for at in range(30):
        log_folder(tmp_path, f"ns_p{at}_{UID}", "c")
    logs = LogDirs(tmp_path)
    monkeypatch.setattr(log_dirs, "MOST_ENTRIES", 10)
    await logs.scan()
    await logs.scan()
    assert logs.errors["too_many"] == 1


async def test_a_flood_of_entries_is_cut_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for at in range(30):
        log_folder(tmp_path, f"ns_p{at}_{UID}", "c")
    monkeypatch.setattr(log_dirs, "MOST_ENTRIES", 10)
    logs = LogDirs(tmp_path)
    await logs.scan()
    assert len(logs.pods() or ()) == 10
    assert logs.errors["too_many"] > 0
    status = logs.status()
    assert status.fault is not None
    assert (status.up, status.fault.reason) == (False, "too_many")
    assert "more than 10 entries; the others are left out" in status.fault.detail


async def test_a_missing_folder_is_told_and_the_last_list_is_kept(tmp_path: Path) -> None:
    logs = LogDirs(tmp_path)
    assert logs.pods() is None
    assert not logs.status().up
    await logs.scan()
    missing = logs.status()
    assert not missing.up and missing.fault and missing.fault.reason == "missing"
    assert missing.age_seconds is None
    log_folder(tmp_path, f"ns_p_{UID}", "c")
    await logs.scan()
    assert logs.status().up
    (tmp_path / "pods").rename(tmp_path / "gone")
    await logs.scan()
    kept = logs.status()
    assert not kept.up and kept.age_seconds is not None
    assert [pod.uid for pod in logs.pods() or ()] == [UID]


async def test_it_keeps_looking(tmp_path: Path) -> None:
    log_folder(tmp_path, f"ns_p_{UID}", "c")
    logs = LogDirs(tmp_path, rescan_seconds=0.01)
    task = asyncio.create_task(logs.run())
    try:
        await until(logs.pods)
        log_folder(tmp_path, f"ns_q_{OTHER}", "c")
        await until(lambda: len(logs.pods() or ()) == 2)
    finally:
        task.cancel()


async def test_a_scan_that_finds_the_same_keeps_the_same_tuple(tmp_path: Path) -> None:
    log_folder(tmp_path, f"team_p_{UID}", "main")
    part = LogDirs(tmp_path)
    await part.scan()
    before = part.pods()
    await part.scan()
    assert part.pods() is before
    log_folder(tmp_path, f"team_q_{OTHER}", "main")
    await part.scan()
    assert [pod.name for pod in part.pods() or ()] == ["p", "q"]


async def test_it_looks_again_soon_when_it_is_asked_to(tmp_path: Path) -> None:
    (tmp_path / "pods").mkdir()
    logs = LogDirs(tmp_path, rescan_seconds=3600.0)
    looking = asyncio.create_task(logs.run())
    try:
        await until(lambda: logs.pods() == ())
        log_folder(tmp_path, f"ns_p_{UID}", "c")
        logs.look_again()
        await until(lambda: bool(logs.pods()))
    finally:
        looking.cancel()
