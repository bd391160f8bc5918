"""Names and places of the containers that root runs with Podman.

Containers of other users are not looked up: users can write anything into their own state.
"""

import re
from pathlib import Path

import msgspec
from msgspec import Struct

from podgpu.host.file import Parsed, content
from podgpu.host.names import believed

FOLDER = "var/lib/containers/storage/overlay-containers"
# Containers started with --rm are in a separate file.
FILES = ("containers.json", "volatile-containers.json")

_MOST_BYTES = 2**24
_CONFIG_BYTES = 2**22  # also holds the mounts and the filter of system calls
_ID = re.compile("[0-9a-f]{64}")


class _PodmanContainer(Struct):
    id: str
    names: list[str] | None = None


class _Linux(Struct, rename="camel"):
    cgroups_path: str = ""


class _Bundle(Struct):
    linux: _Linux | None = None


class Podman:
    def __init__(self, root: Path) -> None:
        self._folder = root / FOLDER
        self._files = [Parsed(root / FOLDER / file, _MOST_BYTES, _names) for file in FILES]

    def name(self, container_id: str) -> str | None:
        found = (file.get().get(container_id) for file in self._files)
        return next((name for name in found if name), None)

    def place(self, container_id: str) -> str | None:
        """Return the container's cgroup, where it is below that of a service: as Quadlet and `--cgroups=split` do."""
        if not _ID.fullmatch(container_id):
            return None
        text = content(self._folder / container_id / "userdata" / "config.json", _CONFIG_BYTES)
        try:
            linux = msgspec.json.decode(text, type=_Bundle).linux if text else None
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return linux.cgroups_path if linux and linux.cgroups_path.startswith("/") else None


def _names(text: bytes) -> dict[str, str]:
    try:
        containers = msgspec.json.decode(text, type=list[_PodmanContainer])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    return {each.id: name for each in containers for name in (each.names or ())[:1] if believed(name)}
