"""What the kernel allows an agent to have: memory, CPU time."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.node import Node

_ROOT = Path("/sys/fs/cgroup")
_NAMES = {
    "memory": ("memory.limit_in_bytes", "memory.max"),
    "cpu": ("cpu.cfs_quota_us", "cpu.max"),
}


class Limit:
    """A cgroup of one controller for the agent that is started next on this node, in version 1 or 2."""

    def __init__(self, node: Node, controller: str) -> None:
        first, second = _NAMES[controller]
        own = f"podgpulimit{os.getpid()}"
        places = [(_ROOT / controller / own, first), (_ROOT / own, second)]
        self.folder, self._name = next(
            ((folder, name) for folder, name in places if _has(folder.parent, controller)), (Path(), "")
        )
        if not self._name or os.geteuid() != 0:
            pytest.skip(f"needs root and the cgroup controller {controller}")
        self.folder.mkdir()
        node.before = ["sh", "-c", f'echo $$ > {self.folder}/cgroup.procs; exec "$@"', "sh"]
        node.on_close(self._remove)

    @contextmanager
    def set(self, most: int) -> Iterator[None]:
        """Allow this many bytes of memory, or this many microseconds of each tenth of a second."""
        file = self.folder / self._name
        before = file.read_text()
        file.write_text(str(most))
        yield
        file.write_text(before)

    def read(self, *names: str) -> str:
        """Return the text of the first of these files that there is."""
        return next((self.folder / name).read_text() for name in names if (self.folder / name).exists())

    def _remove(self) -> None:
        while (self.folder / "cgroup.procs").read_text():
            time.sleep(0.01)
        self.folder.rmdir()


def _has(folder: Path, controller: str) -> bool:
    if (folder / "cgroup.subtree_control").exists():
        return controller in (folder / "cgroup.subtree_control").read_text().split()
    return folder.name == controller and (folder / "cgroup.procs").exists()
