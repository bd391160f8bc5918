"""Processes on a node, as /proc shows them.

Some are real, in real cgroups. Others are written down. The agent reads a folder that has for each PID either a link to
the real /proc or files of its own.
"""

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

SLEEP = "print(flush=True); import time; time.sleep(600)"
_MOUNTS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup/systemd"))


class Processes:
    """`folder` is what the agent reads as /proc."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._started = ExitStack()
        self._top: Path | None = None

    def start(self, place: str, program: str = SLEEP) -> tuple[int, str]:
        """Start a real process in a real cgroup, and wait for the first line of its program.

        In `place`, TOP stands for the name of the slice that it is in.
        """
        top = self._cgroup()
        cgroup = top / place.replace("TOP", top.stem)
        cgroup.mkdir(parents=True, exist_ok=True)
        enter = f'echo $$ > {cgroup}/cgroup.procs; exec "$@"'
        command = ["sh", "-c", enter, "sh", sys.executable, "-c", program]
        started = subprocess.Popen(command, stdout=subprocess.PIPE)
        self._started.callback(started.wait)
        self._started.callback(started.kill)
        assert started.stdout
        self._started.callback(started.stdout.close)
        said = started.stdout.readline()
        assert said
        self.link(started.pid)
        return started.pid, said.decode().strip()

    def link(self, pid: int) -> None:
        """Show a real process."""
        (self.folder / str(pid)).symlink_to(f"/proc/{pid}")

    def hide(self, pid: int) -> None:
        (self.folder / str(pid)).unlink()

    def write(self, pid: int, cgroup: str, start: int = 100) -> None:
        """Write down a process that there is not. `start` is in ticks since boot."""
        self.rewrite(pid, "cgroup", cgroup)
        fields = ["S", *(["0"] * 18), str(start), *(["0"] * 30)]
        self.rewrite(pid, "stat", f"{pid} (python3) {' '.join(fields)}\n")

    def rewrite(self, pid: int, name: str, text: str) -> None:
        folder = self.folder / str(pid)
        folder.mkdir(exist_ok=True)
        part = folder / f"{name}.part"
        part.write_text(text)
        part.replace(folder / name)

    def erase(self, pid: int) -> None:
        folder = self.folder / str(pid)
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()

    def close(self) -> None:
        self._started.close()
        if self._top is None:
            return
        for folder, _, _ in os.walk(self._top, topdown=False):
            while (Path(folder) / "cgroup.procs").read_text():
                time.sleep(0.01)
            Path(folder).rmdir()

    def _cgroup(self) -> Path:
        if self._top is None:
            root = next((mount for mount in _MOUNTS if (mount / "cgroup.procs").exists()), None)
            if root is None or os.geteuid() != 0:
                pytest.skip("needs root and a cgroup hierarchy")
            self._top = root / f"podgpufaults{os.getpid()}.slice"
        return self._top
