"""Names and places of Docker's containers, from the files that it keeps for each."""

import re
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Struct

from podgpu.host.file import Parsed, content
from podgpu.host.names import believed

FOLDER = PurePosixPath("/var/lib/docker")
SETTINGS = "etc/docker/daemon.json"

_CONFIG_BYTES = 2**20  # also holds the environment and the labels
_SETTINGS_BYTES = 2**16
_ID = re.compile("[0-9a-f]{64}")


class _DockerContainer(Struct, rename="pascal"):
    name: str


class _HostConfig(Struct, rename="pascal"):
    cgroup_parent: str = ""


class _Settings(Struct, rename="kebab"):
    data_root: str = ""


class Docker:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = Parsed(root / SETTINGS, _SETTINGS_BYTES, _data_root)

    def name(self, container_id: str) -> str | None:
        text = self._content(container_id, "config.v2.json")
        return _name(text) if text else None

    def place(self, container_id: str) -> str | None:
        """Return the container's cgroup, where it was given a parent of its own."""
        text = self._content(container_id, "hostconfig.json")
        try:
            parent = msgspec.json.decode(text, type=_HostConfig).cgroup_parent if text else ""
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return f"{parent.rstrip('/')}/{container_id}" if parent.startswith("/") else None

    def _content(self, container_id: str, file: str) -> bytes | None:
        if not _ID.fullmatch(container_id):
            return None
        folder = self._root / self._folder.get().relative_to("/")
        return content(folder / "containers" / container_id / file, _CONFIG_BYTES)


def _name(text: bytes) -> str | None:
    try:
        return believed(msgspec.json.decode(text, type=_DockerContainer).name.removeprefix("/"))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _data_root(text: bytes) -> PurePosixPath:
    """Return the folder of Docker's state, which is often moved to a larger disk."""
    try:
        given = PurePosixPath(msgspec.json.decode(text, type=_Settings).data_root)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return FOLDER
    return given if given.is_absolute() and ".." not in given.parts else FOLDER
