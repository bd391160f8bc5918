"""Real processes in real cgroups that look like a kubelet's."""

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path

MOUNTS = tuple(map(Path, ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd")))


def cgroup_root() -> Path | None:
    """Return where cgroups can be made, if anywhere."""
    if os.geteuid() != 0:
        return None
    return next((mount for mount in MOUNTS if os.access(mount / "cgroup.procs", os.W_OK)), None)


class Machine:
    """The processes of pods, and those of the host. Whose each is, is written down in a file."""

    def __init__(self, root: Path, owners: Path) -> None:
        self._owners = owners.open("a", buffering=1)
        self._top = root / f"podgpusoak{os.getpid()}.slice"
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, pod_uid: str = "", container_id: str = "") -> int:
        """Start a process that sleeps; without a pod it is the host's."""
        place = self._pod(pod_uid) / container_id if pod_uid else self._top / "host.service"
        place.mkdir(parents=True, exist_ok=True)
        command = ["sh", "-c", f"echo $$ > {place}/cgroup.procs; echo; exec sleep 7200"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout
        process.stdout.readline()  # from here on it is in its cgroup
        process.stdout.close()
        self._running[process.pid] = process
        self._owners.write(f"{process.pid} {pod_uid}\n")
        return process.pid

    def end(self, pid: int) -> None:
        process = self._running.pop(pid)
        process.kill()
        process.wait()

    def remove_pod(self, pod_uid: str) -> None:
        _remove(self._pod(pod_uid))

    def close(self) -> None:
        for pid in list(self._running):
            self.end(pid)
        self._owners.close()
        _remove(self._top)

    def _pod(self, uid: str) -> Path:
        return self._top / f"{self._top.stem}-kubepods.slice/burstable/pod{uid}"


def _remove(top: Path) -> None:
    for folder, _, _ in os.walk(top, topdown=False):
        for _ in range(100):
            with suppress(OSError):
                Path(folder).rmdir()
                break
            time.sleep(0.01)  # who was killed may still be leaving
