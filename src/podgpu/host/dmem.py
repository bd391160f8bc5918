"""GPU memory that the kernel charges to cgroups, by the files of its `dmem` controller: `nvidia/PCI/vidmem BYTES`.

A cgroup's figure includes that of the cgroups below it. What a process allocates is charged to the cgroup that it is in
at that moment, or to the nearest one above that has the controller, and stays there. Only the root of the tree lists
the regions in `dmem.capacity`.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from podgpu.host import cgroup
from podgpu.host.proc_stat import read_text
from podgpu.host.system_files import as_nvml
from podgpu.model import HIDDEN_PID, ChargedCgroup, Holder

_MOST_BYTES = 1 << 16  # of a file: a line has some fifty, and a node has few regions
_MOST_CGROUPS = 5000  # that are looked at: users may make as many as they like
_MOST_LEVELS = 16  # above and with a container, also where the node is a container itself
_KNOWN = 4096  # paths whose owner is kept
_LARGEST = 1 << 60  # bytes; the kernel writes `max` for what it cannot count
_REGION = re.compile(
    r"nvidia/([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})(\.[0-7])?/vidmem ([0-9]{1,19})", re.ASCII | re.IGNORECASE
)


def vidmem(text: str) -> dict[str, int]:
    """Return the bytes of each NVIDIA card, by its PCI address as NVML writes it. Other lines are not ours."""
    found: dict[str, int] = {}
    twice: set[str] = set()
    for line in text[:_MOST_BYTES].split("\n"):
        match = _REGION.fullmatch(line)
        if match is None or int(match[3]) > _LARGEST:
            continue
        card = as_nvml(f"{match[1]}{match[2] or '.0'}")
        twice |= {card} & found.keys()
        found[card] = int(match[3])
    # Two figures for one card are none.
    return {card: number for card, number in found.items() if card not in twice}


class Dmem:
    """`root` is where the whole tree of cgroups is mounted. A pod sees only its own branch, unless given the host's."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._owner_id: Callable[[str], str | None] = lru_cache(_KNOWN)(_owner_id)

    def charged(self, lines: Iterable[str]) -> tuple[ChargedCgroup, ...] | None:
        """Return what is charged to each container. None where the kernel or the driver charges nothing to anybody.

        `lines` are those of /proc/PID/cgroup for processes on cards: their containers count even if nothing is charged
        to them. A container whose cgroup does not have the controller is left out.
        """
        if not vidmem(self._read("dmem.capacity") or ""):
            return None
        found = dict(self._walk())
        for path in filter(None, map(self._container_of, set(lines))):
            if path not in found and (amounts := self._amounts(path)) is not None:
                found[path] = amounts
        return tuple(_charged(path, amounts) for path, amounts in sorted(found.items()))

    def _walk(self) -> Iterator[tuple[str, Mapping[str, int]]]:
        """Yield the containers that anything is charged to. Nothing is charged below a cgroup that has none."""
        waiting, left = [""], _MOST_CGROUPS
        while waiting and left:
            path = waiting.pop()
            left -= 1
            amounts = self._amounts(path) if path else {}
            if path and not (amounts and any(amounts.values())):
                continue
            if amounts and self._owner_id(path):
                yield path, amounts
            else:
                waiting += self._below(path)

    def _below(self, path: str) -> list[str]:
        try:
            with os.scandir(f"{self._root}{path}") as entries:
                return [f"{path}/{entry.name}" for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:  # it has just been removed
            return []

    def _amounts(self, path: str) -> dict[str, int] | None:
        text = self._read(f"{path.lstrip('/')}/dmem.current")
        return None if text is None else vidmem(text)

    def _container_of(self, line: str) -> str | None:
        """Return the cgroup of the container that a process is in. Its own may be deeper.

        None if there is none, or the path begins at the reader's own cgroup, so that it does not lead from the root.
        """
        path = line.removeprefix("0::") if line.startswith("0::/") else ""
        names = path.removesuffix(" (deleted)").split("/")
        if ".." in names:
            return None
        # Below its container, a tenant may make as many levels as it likes.
        tops = ("/".join(names[:level]) for level in range(2, min(len(names), _MOST_LEVELS) + 1))
        return next(filter(self._owner_id, tops), None)

    def _read(self, file: str) -> str | None:
        try:
            return read_text(f"{self._root}/{file}", _MOST_BYTES)
        except (OSError, ValueError):  # a path with a zero byte in it is no path
            return None


def _charged(path: str, amounts: Mapping[str, int]) -> ChargedCgroup:
    match = cgroup.classify(f"0::{path}")
    return ChargedCgroup(
        holder=Holder(pid=HIDDEN_PID, kind=match.kind, owner=match.owner, cgroup=match.line), cards=dict(amounts)
    )


def _owner_id(path: str) -> str | None:
    owner = cgroup.classify(f"0::{path}").owner
    return owner.container_id if owner else None
