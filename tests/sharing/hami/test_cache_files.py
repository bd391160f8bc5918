"""A tenant owns the folder: whatever he puts there, he is read without waiting or falling, and only as himself."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podgpu.model import VirtualGpu
from podgpu.sharing.hami import cache_files
from podgpu.sharing.hami.cache_files import observe
from podgpu.sharing.inventory import Host, Observation
from tests.sharing.hami.cachefile import (
    GIB,
    ONE,
    OTHER_POD,
    POD,
    TWO,
    CacheFile,
    Process,
    folder,
    write,
)

PODS = {70: POD, 71: POD, 80: OTHER_POD}
WORK = Process(pid=70, cards=[(1, 2, 3, 6, 40)])


def look(root: Path) -> Observation:
    return observe(Host(root=root, pod_uid=PODS.get))


def only(root: Path) -> VirtualGpu:
    (vgpu,) = look(root).vgpus
    return vgpu


def refused(root: Path) -> dict[str, int]:
    """What was wrong, where nothing is left to show."""
    seen = look(root)
    assert seen.vgpus == ()
    return dict(seen.errors)


@contextmanager
def at_most_seconds(seconds: int) -> Iterator[None]:
    """Fail rather than wait: a reader of a FIFO would do so for ever."""

    def stop(_signal: int, _frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_a_folder_names_pod_and_container(tmp_path: Path) -> None:
    write(tmp_path, CacheFile(processes=[WORK]).new(), container="my-server-1")
    assert only(tmp_path) == VirtualGpu(
        pod_uid=POD,
        container="my-server-1",
        gpu=ONE,
        index=0,
        memory_limit_bytes=8 * GIB,
        core_limit_ratio=0.3,
        memory_used_bytes=6,
        context_bytes=1,
        module_bytes=2,
        buffer_bytes=3,
        sm_ratio=0.4,
        last_kernel_at=1_760_000_000.0,
        pids=(70,),
    )
    assert not look(tmp_path).errors


def test_older_files_tell_the_same_but_the_last_kernel(tmp_path: Path) -> None:
    write(tmp_path, CacheFile(processes=[WORK]).old())
    vgpu = only(tmp_path)
    assert (vgpu.memory_used_bytes, vgpu.sm_ratio, vgpu.pids, vgpu.last_kernel_at) == (6, 0.4, (70,), None)


def test_each_card_of_each_container_is_one(tmp_path: Path) -> None:
    file = CacheFile([ONE, TWO], [GIB, 2 * GIB], [10, 20], [Process(70, [(0, 0, 0, 5, 1), (0, 0, 0, 7, 2)])])
    write(tmp_path, file.new(), container="a")
    write(tmp_path, CacheFile().old(), pod=OTHER_POD, container="a")
    seen = look(tmp_path).vgpus
    assert [(vgpu.pod_uid, vgpu.gpu, vgpu.index, vgpu.memory_used_bytes) for vgpu in seen] == [
        (POD, ONE, 0, 5),
        (POD, TWO, 1, 7),
        (OTHER_POD, ONE, 0, 0),
    ]


def test_processes_add_up_to_no_more_than_all_of_the_card(tmp_path: Path) -> None:
    processes = [Process(pid, [(0, 0, 0, GIB, 80)]) for pid in (70, 71)]
    write(tmp_path, CacheFile(processes=processes).new())
    vgpu = only(tmp_path)
    assert (vgpu.memory_used_bytes, vgpu.sm_ratio, vgpu.pids) == (2 * GIB, 1.0, (70, 71))


def test_without_a_limit_of_the_cores_their_use_is_not_known(tmp_path: Path) -> None:
    write(tmp_path, CacheFile(cores=[0], processes=[WORK]).new())
    vgpu = only(tmp_path)
    assert (vgpu.core_limit_ratio, vgpu.sm_ratio, vgpu.memory_used_bytes) == (None, None, 6)


@pytest.mark.parametrize(("percent", "ratio"), [(0, None), (25, 0.25)])
def test_all_of_the_cores_may_be_no_limit(tmp_path: Path, percent: int, ratio: float | None) -> None:
    """Then nobody writes how they are used, which looks like idleness."""
    write(tmp_path, CacheFile(cores=[100], processes=[Process(70, [(0, 0, 0, 0, percent)])]).new())
    assert only(tmp_path).sm_ratio == ratio


def test_a_container_without_processes_uses_nothing(tmp_path: Path) -> None:
    write(tmp_path, CacheFile().new())
    vgpu = only(tmp_path)
    assert (vgpu.memory_used_bytes, vgpu.sm_ratio, vgpu.pids) == (0, 0.0, ())


def test_a_process_of_another_pod_is_refused_with_its_memory(tmp_path: Path) -> None:
    forged = Process(80, [(0, 0, 0, 5 * GIB, 90)])
    write(tmp_path, CacheFile(processes=[WORK, forged]).new())
    vgpu = only(tmp_path)
    assert (vgpu.memory_used_bytes, vgpu.sm_ratio, vgpu.pids) == (6, 0.4, (70,))
    assert look(tmp_path).errors == {"foreign_pid": 1}


@pytest.mark.parametrize("pid", [99, 0, -1, (1 << 31) - 1])
def test_a_process_that_nobody_knows_is_refused(tmp_path: Path, pid: int) -> None:
    """It has gone, or the library has not found its PID yet. Then there is no number, and not 0."""
    write(tmp_path, CacheFile(processes=[Process(pid, [(0, 0, 0, 5 * GIB, 90)])]).new())
    vgpu = only(tmp_path)
    assert (vgpu.memory_used_bytes, vgpu.sm_ratio, vgpu.pids) == (None, None, ())
    assert vgpu.memory_limit_bytes == 8 * GIB
    assert look(tmp_path).errors == {"unknown_pid": 1}


def test_a_process_with_an_absurd_size_is_counted(tmp_path: Path) -> None:
    write(tmp_path, CacheFile(processes=[Process(70, [(0, 0, 0, 1 << 60, 1)])]).new())
    assert only(tmp_path).memory_used_bytes is None
    assert look(tmp_path).errors == {"memory": 1}


def test_a_node_without_hami_is_no_error(tmp_path: Path) -> None:
    assert refused(tmp_path) == {}


def test_a_container_whose_library_has_not_written_is_no_error(tmp_path: Path) -> None:
    folder(tmp_path).mkdir(parents=True)
    (folder(tmp_path) / "lock").touch()
    assert refused(tmp_path) == {}


def test_of_several_files_none_is_believed(tmp_path: Path) -> None:
    for name in ("a.cache", "b.cache"):
        write(tmp_path, CacheFile().new(), name=name)
    assert refused(tmp_path) == {"several_caches": 1}


def test_nobody_is_kept_busy_with_many_files(tmp_path: Path) -> None:
    write(tmp_path, CacheFile().new())
    for number in range(cache_files.MOST_FILES):
        (folder(tmp_path) / str(number)).touch()
    assert refused(tmp_path) == {"too_many_files": 1}


def test_nobody_is_kept_busy_with_many_folders(tmp_path: Path) -> None:
    for number in range(cache_files.MOST_FOLDERS + 1):
        folder(tmp_path, container=f"c{number}").mkdir(parents=True)
    assert refused(tmp_path) == {"too_many_folders": 1}


@pytest.mark.parametrize("name", ["x", f"{POD}", f"{POD}_", f"{POD}_A", f"{POD}_a_b", f"x{POD}_a", f"{POD}_a\n"])
def test_a_folder_of_another_name_is_not_opened(tmp_path: Path, name: str) -> None:
    path = folder(tmp_path).with_name(name)
    path.mkdir(parents=True)
    (path / "x.cache").write_bytes(CacheFile().new())
    assert refused(tmp_path) == {"name": 1}


def test_a_link_to_a_file_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.cache"
    target.write_bytes(CacheFile().new())
    folder(tmp_path).mkdir(parents=True)
    (folder(tmp_path) / "x.cache").symlink_to(target)
    assert refused(tmp_path) == {"link": 1}


def test_a_link_to_a_folder_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", CacheFile().new())
    folder(tmp_path).parent.mkdir(parents=True)
    folder(tmp_path).symlink_to(folder(tmp_path / "elsewhere"))
    assert refused(tmp_path) == {"link": 1}


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    folder(tmp_path).mkdir(parents=True)
    os.mkfifo(folder(tmp_path) / "x.cache")
    with at_most_seconds(5):
        assert refused(tmp_path) == {"not_a_file": 1}


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (folder(tmp_path) / "x.cache").mkdir(parents=True)
    assert refused(tmp_path) == {"not_a_file": 1}


def test_a_socket_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path).mkdir(parents=True)
    monkeypatch.chdir(folder(tmp_path))  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("x.cache")
        assert refused(tmp_path) == {"unreadable": 1}


@pytest.mark.parametrize("size", [0, 4, 1856, 2008952, 2008954])
def test_a_file_of_another_size_is_refused(tmp_path: Path, size: int) -> None:
    path = write(tmp_path, CacheFile().new())
    os.truncate(path, size)
    assert refused(tmp_path) == {"size": 1}


def test_a_file_of_any_size_costs_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, CacheFile().new())
    os.truncate(path, 1 << 40)
    assert refused(tmp_path) == {"size": 1}


def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, CacheFile(processes=[WORK]).new())
    read = os.pread

    def shrinking(file: int, length: int, offset: int) -> bytes:
        data = read(file, length, offset)
        os.truncate(path, 100)
        return data

    monkeypatch.setattr(os, "pread", shrinking)
    assert refused(tmp_path) == {"truncated": 1}


def test_a_bad_file_does_not_hide_a_good_one(tmp_path: Path) -> None:
    write(tmp_path, CacheFile(magic=1).new(), container="bad")
    write(tmp_path, CacheFile().new(), container="good")
    assert only(tmp_path).container == "good"
    assert look(tmp_path).errors == {"magic": 1}


def test_no_file_stays_open(tmp_path: Path) -> None:
    write(tmp_path, CacheFile(magic=1).new(), container="bad")
    write(tmp_path, CacheFile().new(), container="good")
    before = len(list(Path("/proc/self/fd").iterdir()))
    look(tmp_path)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.binary(max_size=3000),
    size=st.sampled_from([1197897, 2008953]) | st.none(),
    is_new=st.booleans() | st.none(),
)
def test_no_file_breaks_the_reader(tmp_path: Path, data: bytes, size: int | None, *, is_new: bool | None) -> None:
    start = b"" if is_new is None else (CacheFile().new() if is_new else CacheFile().old())[:1900]
    path = write(tmp_path, start + data)
    if size is not None:
        os.truncate(path, size)
    seen = look(tmp_path)
    assert all(vgpu.pod_uid == POD and set(vgpu.pids) <= {70, 71} for vgpu in seen.vgpus)


def test_files_full_of_processes_are_looked_up_once_each_and_only_so_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenant fills many files. Those with few processes come first, and a file that is not looked up says nothing."""
    monkeypatch.setattr(cache_files, "MOST_LOOKED_UP", 300)
    asked: list[int] = []

    def pod_uid(pid: int) -> str | None:
        asked.append(pid)
        return PODS.get(pid)

    flood = [Process(pid=1000 + number, cards=[(1, 1, 1, 3, 1)]) for number in range(cache_files.MOST_SLOTS)]
    other = [Process(pid=5000 + number, cards=[(1, 1, 1, 3, 1)]) for number in range(cache_files.MOST_SLOTS)]
    for number in range(1, 21):
        write(tmp_path, CacheFile(processes=flood).new(), f"{number:08x}-1111-4222-8333-444444444444")
        write(tmp_path, CacheFile(processes=[WORK, *other][:256]).new(), f"{number:08x}-2222-4222-8333-444444444444")
    write(tmp_path, CacheFile(processes=[WORK]).new())
    seen = observe(Host(root=tmp_path, pod_uid=pod_uid))
    assert len(asked) == len(set(asked)) <= 300
    (victim,) = [vgpu for vgpu in seen.vgpus if vgpu.pod_uid == POD]
    assert (victim.memory_used_bytes, victim.pids) == (6, (70,))
    assert seen.errors["processes"] == 20
    left_out = [vgpu for vgpu in seen.vgpus if "-2222-" in vgpu.pod_uid]
    assert {(vgpu.memory_used_bytes, vgpu.memory_limit_bytes) for vgpu in left_out} == {(None, 8 * GIB)}


def test_many_files_may_have_few_processes_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_files, "MOST_READ", 64)
    flood = [Process(pid=1000 + number, cards=[(1, 1, 1, 3, 1)]) for number in range(17)]
    for number in range(3):
        write(tmp_path, CacheFile(processes=flood).new(), f"{number:08x}-1111-4222-8333-444444444444")
    write(tmp_path, CacheFile(processes=[WORK]).new(), OTHER_POD)
    seen = look(tmp_path)
    assert [vgpu.pod_uid for vgpu in seen.vgpus] == [OTHER_POD]
    assert seen.errors["processes"] == 3
