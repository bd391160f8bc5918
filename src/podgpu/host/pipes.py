"""The pipe directory of MPS that a process has, by its /proc/PID/mountinfo.

Clients and server meet in a directory of the host. The device plugin mounts it into the pods that it gives a share to;
nobody else can mount a directory of the host without being trusted with the host itself.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

# Where device plugins and DRA drivers keep it: folders of the host that only root can make.
_PLACES = re.compile(
    r"(?:/run/nvidia/mps|/tmp/nvidia-mps|/var/lib/kubelet/plugins/[^/]+/mps)(?:/.*)?", re.DOTALL
)
DAEMON = "nvidia-cuda-mps"  # as much of the name of its control daemon as the kernel keeps

_ESCAPED = re.compile(r"\\([0-7]{3})")
_LINES = 4096


class _Mount(Struct, frozen=True):
    """A piece of a filesystem, `root`, and where it is mounted."""

    filesystem: str
    root: str
    at: str


def directory(mounts: str, host: str) -> str | None:
    """Return the host's path of the pipe directory among a process's mounts, by those of the host's first process."""
    hosts = list(_mounts(host))
    for mount in _mounts(mounts):
        for path in _on_host(mount, hosts):
            if _PLACES.fullmatch(path):
                return path
    return None


def _on_host(mount: _Mount, hosts: list[_Mount]) -> Iterator[str]:
    for one in hosts:
        if one.filesystem == mount.filesystem and (below := _below(mount.root, one.root)) is not None:
            yield f"{one.at.rstrip('/')}{below}"


def _below(path: str, root: str) -> str | None:
    if root == "/":
        return path
    return path.removeprefix(root) if f"{path}/".startswith(f"{root}/") else None


def _mounts(text: str) -> Iterator[_Mount]:
    for line in text.split("\n", _LINES)[:_LINES]:
        fields = line.split(" ", 5)
        if len(fields) == 6:
            yield _Mount(fields[2], _plain(fields[3]), _plain(fields[4]))


def _plain(path: str) -> str:
    """The kernel writes spaces and the like as octal numbers."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), path) if "\\" in path else path
