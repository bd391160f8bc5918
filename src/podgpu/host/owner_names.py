"""Names of owners outside Kubernetes: `docker/web`, `slurm/1234`, `user/alice`.

The names and cgroups of containers are read from the files of Docker and Podman.
"""

import re
import time
from bisect import bisect_right
from collections.abc import Callable
from math import inf
from pathlib import Path, PurePosixPath
from typing import TypeVar

import msgspec
from msgspec import Struct

from podgpu.host.system_files import ParsedFile, read_limited
from podgpu.model import Holder

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
        container.id: name for container in containers for name in (container.names or ())[:1] if plausible_name(name)
    }


class ContainerCache:
    """Caches what `read` returns for a container's id, even None.

    A container that is being removed keeps its text for as long as it is asked for.
    """

    def __init__(self, read: Callable[[str], str | None], clock: Callable[[], float]) -> None:
        self._read = read
        self._clock = clock
        self._known: dict[str, tuple[str | None, float]] = {}  # each with the time when it was read

    def get(self, container_id: str) -> str | None:
        now = self._clock()
        text, read_at = self._known.get(container_id, (None, -inf))
        if now - read_at >= BELIEVED_SECONDS:
            text = self._read(container_id) or text
            self._known.pop(container_id, None)
            self._known[container_id] = text, now
            if len(self._known) > MOST_KNOWN:
                del self._known[next(iter(self._known))]
        return text


USERS_FILE = "etc/passwd"
SUBUIDS_FILE = "etc/subuid"
_MOST_BYTES = 2**22
_NUMBER = re.compile(r"[0-9]{1,10}")
# Not digits alone: that would look like another user's number.
_USER_NAME = re.compile(r"(?![0-9]+$)[a-zA-Z0-9_.][a-zA-Z0-9_.@+$-]{0,63}")

_ID_LENGTH, _SHORT_LENGTH = 64, 12
# Only the cgroups below are the user's own: a user of Docker can put a container into any user's slice.
_SESSION = re.compile(r"/user\.slice/user-([0-9]{1,10})\.slice/(?:user@\1\.service|session-[^/]*\.scope)/.*", re.DOTALL)
# Where runtimes put containers, and users cannot make cgroups: the top, slices, and folders at the top.
_RUNTIMES = re.compile(
    r"/(?:[^/]+\.slice/)*|/(?:docker|libpod_parent|default|moby|nerdctl|actions_job|ecs(?:/[^/.]+){0,2})/"
)


class OwnerNames:
    """`root` is where the machine's root is mounted."""

    def __init__(self, root: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._users = Users(root)
        runtimes: dict[str, Docker | Podman] = {"docker": Docker(root), "podman": Podman(root)}
        self._names = {key: ContainerCache(runtime.name, clock) for key, runtime in runtimes.items()}
        self._cgroups = {key: ContainerCache(runtime.cgroup, clock) for key, runtime in runtimes.items()}

    def title(self, holder: Holder) -> str:
        """Return an empty title if the owner is unknown."""
        owner = holder.owner
        if owner and owner.container_id and owner.runtime == "slurm":
            return f"slurm/{owner.container_id}"
        if owner and owner.container_id and holder.kind == "container":
            title = self._container(owner.container_id, owner.runtime or "", holder.cgroup)
            if title:
                return title
        return "" if holder.user is None else f"user/{self._users.name(holder.user)}"

    def _container(self, container_id: str, runtime: str, cgroup: str) -> str | None:
        """Return None for a cgroup that the container's runtime did not make.

        Within a session, a user can name a cgroup after any container, so it counts as the user's own container. A
        service with `Delegate=yes` can do so too, and its processes count as its user's.
        """
        # Only ids of full length differ in their beginnings.
        short = container_id[:_SHORT_LENGTH] if len(container_id) == _ID_LENGTH else container_id
        before, found, _ = _path(cgroup).partition(container_id)
        above = before[: before.rfind("/") + 1]
        if session := _SESSION.fullmatch(above):
            system = runtime if runtime in self._names else "container"
            return f"{system}/{self._users.name(int(session[1]))}/{short}"
        if not _RUNTIMES.fullmatch(above):
            runtime = self._confirmed_runtime(container_id, runtime, before) if found else ""
            if not runtime:
                return None
        names = self._names.get(runtime)
        name = names.get(container_id) if names else None
        return f"{runtime if names else 'container'}/{name or short}"

    def _confirmed_runtime(self, container_id: str, runtime: str, before: str) -> str:
        """Return the runtime whose own files say that it put the container there; nothing if none does."""
        path = f"{before}{container_id}"
        asked = [runtime] if runtime in self._cgroups else [] if runtime else self._cgroups
        return next((name for name in asked if self._cgroups[name].get(container_id) == path), "")


def _path(line: str) -> str:
    """Return the path of a line of /proc/PID/cgroup, without the `..` that a relative one begins with."""
    path = line.split(":", 2)[-1]
    while path.startswith("/../"):
        path = path.removeprefix("/..")
    return path


_Range = tuple[int, int, str]  # the first id, the one after the last, and the owner by name or number


class Users:
    """Names of users, from the machine's own files. Users of a directory service are not in them."""

    def __init__(self, root: Path) -> None:
        self._file = ParsedFile(root / USERS_FILE, _MOST_BYTES, _passwd_names)
        self._ranges = ParsedFile(root / SUBUIDS_FILE, _MOST_BYTES, _subuid_ranges)

    def name(self, number: int) -> str:
        """Return the user's name, or the number if there is no name.

        A subordinate id is named after the user whose containers it is for, unless it has a name of its own.
        """
        names = self._file.get()
        if number in names:
            return names[number]
        owner = _range_owner(self._ranges.get(), number)
        if owner is None:
            return str(number)
        return names.get(int(owner), owner) if _NUMBER.fullmatch(owner) else owner


def _passwd_names(text: bytes) -> dict[int, str]:
    """If two users share a number, the first name counts, as everywhere on the system."""
    names: dict[int, str] = {}
    for line in text.decode("utf-8", "replace").split("\n"):
        fields = line.split(":")
        if len(fields) > 2 and _USER_NAME.fullmatch(fields[0]) and _NUMBER.fullmatch(fields[2]):
            names.setdefault(int(fields[2]), fields[0])
    return names


def _subuid_ranges(text: bytes) -> list[_Range]:
    """Return the ranges in order. Those that overlap prove nothing and are left out."""
    ranges: list[_Range] = []
    for line in text.decode("utf-8", "replace").split("\n"):
        fields = line.split(":")
        if len(fields) == 3 and all(_NUMBER.fullmatch(field) for field in fields[1:]):
            owner, first, count = fields[0], int(fields[1]), int(fields[2])
            if count and first and (_USER_NAME.fullmatch(owner) or _NUMBER.fullmatch(owner)):
                ranges.append((first, first + count, owner))
    ranges.sort()
    return _undisputed(ranges)


def _undisputed(ranges: list[_Range]) -> list[_Range]:
    disputed: set[_Range] = set()
    longest: _Range = (0, 0, "")
    for subuids in ranges:
        if subuids[0] < longest[1] and subuids[2] != longest[2]:
            disputed |= {subuids, longest}
        longest = max(longest, subuids, key=lambda known: known[1])
    return [subuids for subuids in ranges if subuids not in disputed]


def _range_owner(ranges: list[_Range], number: int) -> str | None:
    at = bisect_right(ranges, (number + 1,)) - 1
    return ranges[at][2] if at >= 0 and ranges[at][0] <= number < ranges[at][1] else None
