"""The same against the running kernel: real processes, namespaces and cgroups."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from podgpu.host.procfs import BELIEVED_SECONDS, Procfs
from podgpu.model import Owner
from tests.patience import wait_until

PROC = Path("/proc")
POD = "121157b5-c67d-4c3e-9052-cb27bbb711fb"
OTHER_POD = "4c9f1974-5c46-44c2-b42f-3bbf0e98eef9"
ID = "1cd3449e930b8a28c7595240fa32ba20c84f36d059e5fbe63104ad40057992d1"
OTHER_ID = "bacb920470900725e0aa7d914fee5eb0854315448b024b6b8420ad8429c607ba"


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def test_a_real_process_lives_becomes_a_zombie_and_is_gone(child: subprocess.Popen[bytes]) -> None:
    procfs = Procfs(PROC)
    alive = procfs.holders([child.pid])[child.pid]
    assert alive.start_time is not None and alive.cgroup
    assert alive.kind != "unknown" or alive.reason == "private_cgroup_namespace"
    child.kill()
    wait_until(lambda: b") Z " in (PROC / str(child.pid) / "stat").read_bytes())
    assert procfs.holders([child.pid])[child.pid] == alive
    stranger = Procfs(PROC).holders([child.pid])[child.pid]
    assert (stranger.kind, stranger.reason) == ("unknown", "zombie")
    child.wait()
    assert procfs.holders([child.pid])[child.pid].reason == "exited"


def test_real_processes_are_told_apart_by_their_start(child: subprocess.Popen[bytes]) -> None:
    holders = Procfs(PROC).holders([child.pid, os.getpid()])
    ours, theirs = holders[os.getpid()].start_time, holders[child.pid].start_time
    assert ours is not None and theirs is not None and ours <= theirs


def test_when_a_real_process_started_is_known_as_a_time_of_day(child: subprocess.Popen[bytes]) -> None:
    begun = Procfs(PROC).holders([child.pid])[child.pid].started_at
    assert begun is not None and abs(begun - (PROC / str(child.pid)).stat().st_mtime) < 600


def test_many_cycles_leave_no_descriptor_open(child: subprocess.Popen[bytes]) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        Procfs(PROC).holders([child.pid, 2**22 + 1])
    assert len(list(Path("/proc/self/fd").iterdir())) <= before  # those of earlier tests may close meanwhile


def _unshared(script: str, *flags: str, before: str = "") -> str:
    """Run a script in namespaces of its own, and return what it prints."""
    python = [sys.executable, "-c", textwrap.dedent(script)]
    command = ["sh", "-c", f'{before}exec unshare "$@"', "sh", *flags, *python]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode and done.stderr.startswith(("unshare", "sh")):
        pytest.skip(f"no namespaces here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


READER = """
    import os, sys
    from pathlib import Path
    from podgpu.host.procfs import Procfs
    procfs = Procfs(Path("/proc"))
    fault = procfs.fault()
    pid = PID or os.getpid()
    holder = procfs.holders([pid])[pid]
    print(fault.reason if fault else None, holder.kind, holder.owner and holder.owner.pod_uid, holder.reason)
"""

REUSE = """
    import os, signal, tempfile, time
    from pathlib import Path
    from podgpu.host.procfs import Procfs

    def fork():
        pid = os.fork()
        if pid == 0:
            signal.pause()
        return pid

    first = fork()
    # Through a link, as the namespace itself is a fault.
    root = Path(tempfile.mkdtemp())
    (root / str(first)).symlink_to(f"/proc/{first}")
    procfs = Procfs(root)
    before = procfs.holders([first])[first]
    same = procfs.holders([first])[first]
    listed = time.monotonic()  # by the driver, say
    os.kill(first, signal.SIGKILL)
    os.waitpid(first, 0)
    Path("/proc/sys/kernel/ns_last_pid").write_text(str(first - 1))
    # Start times count in hundredths.
    time.sleep(0.05)
    second = fork()
    late = Procfs(root).holders([second], {second: listed})[second]
    after = procfs.holders([second], {second: time.monotonic()})[second]
    os.kill(second, signal.SIGKILL)
    (root / str(first)).unlink()
    root.rmdir()
    print(first == second, same == before, late.reason, after.start_time > before.start_time)
"""


HEADLESS = """
import ctypes, os, threading, time
from tests.patience import wait_until
threading.Thread(target=time.sleep, args=(600,)).start()
# Ends this thread alone, as pthread_exit does.
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
"""


def test_a_process_whose_first_thread_has_ended_lives_on(hierarchy: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HEADLESS]) as process:
        try:
            _place(process, hierarchy / f"{hierarchy.stem}-kubepods.slice/burstable/pod{POD}/{ID}")
            wait_until(lambda: b") Z " in (PROC / str(process.pid) / "stat").read_bytes())
            holder = Procfs(PROC).holders([process.pid])[process.pid]
        finally:
            process.kill()
    assert (holder.kind, holder.owner) == ("pod", Owner(pod_uid=POD, container_id=ID, qos="burstable"))


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
@pytest.mark.parametrize("flags", [("--pid", "--fork", "--mount-proc"), ("--pid", "--fork")])
def test_a_real_pid_namespace_is_noticed(flags: tuple[str, ...]) -> None:
    assert _unshared(READER.replace("PID", "0"), *flags) == "no_host_pid unknown None no_host_pid"


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
def test_a_real_pid_that_is_used_again_is_noticed() -> None:
    assert _unshared(REUSE, "--pid", "--fork", "--mount-proc") == "True True exited True"


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
def test_a_real_private_cgroup_namespace_is_noticed() -> None:
    assert _unshared(READER.replace("PID", "0"), "--cgroup").endswith("unknown None private_cgroup_namespace")


HIDDEN = """
    import os, subprocess, tempfile
    from pathlib import Path
    from podgpu.host.procfs import Procfs
    root = Path(tempfile.mkdtemp())
    root.chmod(0o755)
    subprocess.run(["mount", "-t", "proc", "-o", "hidepid=2", "proc", str(root)], check=True)
    os.setgroups([])
    os.setegid(65534)
    os.seteuid(65534)
    reason = Procfs(root).holders([os.getppid()])[os.getppid()].reason
    os.seteuid(0)
    subprocess.run(["umount", str(root)], check=True)
    root.rmdir()
    print(reason)
"""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
def test_a_real_proc_that_hides_processes_is_noticed() -> None:
    assert _unshared(HIDDEN, "--mount") == "hidden"


@pytest.fixture
def hierarchy() -> Iterator[Path]:
    """A cgroup of our own in a real hierarchy."""
    mounts = [Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup/systemd")]
    root = next((mount for mount in mounts if (mount / "cgroup.procs").exists()), None)
    if root is None:
        pytest.skip("no cgroup hierarchy that needs no controller")
    top = root / f"podgpu{os.getpid()}.slice"
    try:
        top.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error}")
    yield top
    for folder, _, _ in os.walk(top, topdown=False):
        wait_until(lambda folder=folder: not (Path(folder) / "cgroup.procs").read_text())  # type: ignore[misc]
        Path(folder).rmdir()


def _place(process: subprocess.Popen[bytes], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        (folder / "cgroup.procs").write_text(str(process.pid))
    except OSError as error:
        pytest.skip(f"no process can be moved here: {error}")


def test_a_real_process_in_a_pods_cgroup_is_the_pods(hierarchy: Path, child: subprocess.Popen[bytes]) -> None:
    now = 0.0
    procfs = Procfs(PROC, lambda: now)
    container = hierarchy / f"{hierarchy.stem}-kubepods.slice/burstable/pod{POD}/{ID}"
    _place(child, container)
    holder = procfs.holders([child.pid])[child.pid]
    assert (holder.kind, holder.owner) == ("pod", Owner(pod_uid=POD, container_id=ID, qos="burstable"))
    # It makes a cgroup below its own and calls it another pod's.
    _place(child, container / f"kubepods/pod{OTHER_POD}/{OTHER_ID}")
    now += BELIEVED_SECONDS
    again = procfs.holders([child.pid])[child.pid]
    assert again.owner == holder.owner
    assert OTHER_POD in again.cgroup
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert procfs.holders([child.pid])[child.pid].reason == "exited"


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
@pytest.mark.parametrize(
    "reader", [f"kubepods/burstable/pod{OTHER_POD}/{OTHER_ID}", f"kubepods/pod{OTHER_POD}/{OTHER_ID}"]
)
def test_a_pod_is_seen_from_the_private_cgroup_namespace_of_another(
    hierarchy: Path, child: subprocess.Popen[bytes], reader: str
) -> None:
    """The paths are relative there, and part of what names a pod is hidden."""
    _place(child, hierarchy / f"kubepods/burstable/pod{POD}/{ID}")
    (hierarchy / reader).mkdir(parents=True)
    found = _unshared(
        READER.replace("PID", str(child.pid)),
        "--cgroup",
        before=f"echo $$ > {hierarchy / reader}/cgroup.procs; ",
    )
    assert found.endswith(f"pod {POD}")
    child.kill()


OPENED = """
    import sys
    from pathlib import Path
    from podgpu.host.procfs import Procfs
    opened = set()
    sys.addaudithook(lambda event, args: opened.add(str(args[0])) if event == "open" else None)
    procfs = Procfs(Path("/proc"))
    pids = procfs.pids()
    procfs.mps(procfs.holders(pids).values())
    for pid in pids:
        procfs.newcomer(pid)
    print(*sorted({Path(path).name for path in opened}))
"""


def test_nothing_of_a_process_is_opened_but_what_says_whose_it_is(tmp_path: Path) -> None:
    """Command lines and environments hold secrets. All processes are asked for, as if each were named like MPS."""
    named = tmp_path / "nvidia-cuda-mps-control"
    shutil.copy("/bin/sleep", named)
    with subprocess.Popen([named, "600"]) as process:
        try:
            opened = subprocess.check_output([sys.executable, "-c", textwrap.dedent(OPENED)], text=True).split()
        finally:
            process.kill()
    files = {name for name in opened if not name.isdecimal()}
    assert {"cgroup", "stat", "mountinfo"} <= files
    assert files <= {"cgroup", "stat", "mountinfo", "status", "task", "loadavg", "pid_max"}
