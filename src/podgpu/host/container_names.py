"""Names and cgroups of Docker's and Podman's containers, from the files that these runtimes keep."""

import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import TypeVar

import msgspec
from msgspec import Struct

from podgpu.host.system_files import ParsedFile, read_limited

# A container can be renamed, and a name that could not be read may be readable later.
BELIEVED_SECONDS = 30.0
MOST_KNOWN = 4096

DOCKER_FOLDER = PurePosixPath("/var/lib/docker")
DOCKER_SETTINGS = "etc/docker/daemon.json"
PODMAN_FOLDER = "var/lib/containers/storage/overlay-containers"
# Containers started with --rm are in a separate file.
PODMAN_FILES = ("containers.json", "volatile-containers.json")

_DOCKER_CONFIG_BYTES = 2**20  # also holds the environment and the labels
_DOCKER_SETTINGS_BYTES = 2**16
_PODMAN_LIST_BYTES = 2**24
_PODMAN_CONFIG_BYTES = 2**22  # also holds the mounts and the filter of system calls

_ID = re.compile("[0-9a-f]{64}")
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}")
# A name like this would look like another container's short id.
_SHORT_ID = re.compile(r"[0-9a-f]{12}")

T = TypeVar("T")


class _DockerContainer(Struct, rename="pascal"):
    name: str


class _HostConfig(Struct, rename="pascal"):
    cgroup_parent: str = ""


class _DockerSettings(Struct, rename="kebab"):
    data_root: str = ""


class _PodmanContainer(Struct):
    id: str
    names: list[str] | None = None


class _Linux(Struct, rename="camel"):
    cgroups_path: str = ""


class _Bundle(Struct):
    linux: _Linux | None = None


def plausible_name(name: str) -> str | None:
    """Return the name if Docker or Podman could have given it."""
    return name if _NAME.fullmatch(name) and not _SHORT_ID.fullmatch(name) else None


def _decoded(text: bytes | None, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(text, type=kind) if text else None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


class Docker:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = ParsedFile(root / DOCKER_SETTINGS, _DOCKER_SETTINGS_BYTES, _data_root)

    def name(self, container_id: str) -> str | None:
        found = self._read(container_id, "config.v2.json", _DockerContainer)
        return plausible_name(found.name.removeprefix("/")) if found else None

    def cgroup(self, container_id: str) -> str | None:
        """Return the container's cgroup if the container has a parent cgroup of its own."""
        found = self._read(container_id, "hostconfig.json", _HostConfig)
        if found is None or not found.cgroup_parent.startswith("/"):
            return None
        return f"{found.cgroup_parent.rstrip('/')}/{container_id}"

    def _read(self, container_id: str, file: str, kind: type[T]) -> T | None:
        if not _ID.fullmatch(container_id):
            return None
        folder = self._root / self._folder.get().relative_to("/")
        return _decoded(read_limited(folder / "containers" / container_id / file, _DOCKER_CONFIG_BYTES), kind)


def _data_root(text: bytes) -> PurePosixPath:
    """Return the folder of Docker's state, which is often moved to a larger disk."""
    settings = _decoded(text, _DockerSettings)
    folder = PurePosixPath(settings.data_root if settings else "")
    return folder if folder.is_absolute() and ".." not in folder.parts else DOCKER_FOLDER


class Podman:
    """Knows the containers that root runs. Other users can write anything into their own state."""

    def __init__(self, root: Path) -> None:
        self._folder = root / PODMAN_FOLDER
        self._files = [ParsedFile(self._folder / file, _PODMAN_LIST_BYTES, _names) for file in PODMAN_FILES]

    def name(self, container_id: str) -> str | None:
        found = (file.get().get(container_id) for file in self._files)
        return next((name for name in found if name), None)

    def cgroup(self, container_id: str) -> str | None:
        """Return the container's cgroup if it is below a service, as with Quadlet and `--cgroups=split`."""
        if not _ID.fullmatch(container_id):
            return None
        text = read_limited(self._folder / container_id / "userdata" / "config.json", _PODMAN_CONFIG_BYTES)
        bundle = _decoded(text, _Bundle)
        linux = bundle.linux if bundle else None
        return linux.cgroups_path if linux and linux.cgroups_path.startswith("/") else None


def _names(text: bytes) -> dict[str, str]:
    containers = _decoded(text, list[_PodmanContainer]) or ()
    return {
        container.id: name
        for container in containers
        for name in (container.names or ())[:1]
        if plausible_name(name)
    }


class _CachedText(Struct, frozen=True):
    text: str | None
    read_at: float


class ContainerCache:
    """Caches the text that `read` returns for a container's id, or that it returns none.

    A container that is being removed keeps its text for as long as it is asked for.
    """

    def __init__(self, read: Callable[[str], str | None], clock: Callable[[], float]) -> None:
        self._read = read
        self._clock = clock
        self._known: dict[str, _CachedText] = {}

    def get(self, container_id: str) -> str | None:
        now = self._clock()
        known = self._known.get(container_id)
        if known is None or now - known.read_at >= BELIEVED_SECONDS:
            known = _CachedText(self._read(container_id) or (known.text if known else None), now)
            self._known.pop(container_id, None)
            self._known[container_id] = known
            if len(self._known) > MOST_KNOWN:
                del self._known[next(iter(self._known))]
        return known.text
