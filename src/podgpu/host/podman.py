"""Names of the containers that root runs with Podman.

Containers of other users are not looked up: users can write anything into their own state.
"""

from pathlib import Path

import msgspec
from msgspec import Struct

from podgpu.host.file import Parsed
from podgpu.host.names import believed

FOLDER = "var/lib/containers/storage/overlay-containers"
# Containers started with --rm are in a separate file.
FILES = ("containers.json", "volatile-containers.json")

_MOST_BYTES = 2**24


class _PodmanContainer(Struct):
    id: str
    names: list[str] | None = None


class Podman:
    def __init__(self, root: Path) -> None:
        self._files = [Parsed(root / FOLDER / file, _MOST_BYTES, _names) for file in FILES]

    def name(self, container_id: str) -> str | None:
        found = (file.get().get(container_id) for file in self._files)
        return next((name for name in found if name), None)


def _names(text: bytes) -> dict[str, str]:
    try:
        containers = msgspec.json.decode(text, type=list[_PodmanContainer])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    return {each.id: name for each in containers for name in (each.names or ())[:1] if believed(name)}
