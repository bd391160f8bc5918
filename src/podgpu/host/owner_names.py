"""The owner of a process outside Kubernetes, as a title: `docker/web`, `slurm/1234`, `user/alice`."""

import re
import time
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path

from podgpu.host.container_names import ContainerCache, Docker, Podman
from podgpu.host.system_files import ParsedFile
from podgpu.model import Holder

USERS_FILE = "etc/passwd"
SUBUIDS_FILE = "etc/subuid"
_MOST_BYTES = 2**22
_NUMBER = re.compile(r"[0-9]{1,10}")
# Not digits alone: that would look like another user's number.
_NAME = re.compile(r"(?![0-9]+$)[a-zA-Z0-9_.][a-zA-Z0-9_.@+$-]{0,63}")

_LONG_ID, _SHORT_ID = 64, 12
# Only below this the cgroup is the user's own: a user of Docker can put a container into any user's slice.
_SESSION = re.compile(
    r"/user\.slice/user-([0-9]{1,10})\.slice/(?:user@\1\.service|session-[^/]*\.scope)/.*", re.DOTALL
)
# Where runtimes put containers, and no user can name a cgroup: the top, slices, and folders at the top.
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
        """Within a session, a user can name a cgroup after any container, so it counts as the user's own container.

        So can a service with `Delegate=yes`, whose processes count as its user's. Return None for them.
        """
        # Only ids of full length differ in their beginnings.
        short = container_id[:_SHORT_ID] if len(container_id) == _LONG_ID else container_id
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
    """Return the path of a line of /proc/PID/cgroup. Seen from another cgroup, it begins with the levels to go up."""
    path = line.split(":", 2)[-1]
    while path.startswith("/../"):
        path = path.removeprefix("/..")
    return path


_Range = tuple[int, int, str]  # the first number, the one after the last, and the owner as it is written


class Users:
    """Names of users, from the machine's own files. Users of a directory service are not in them."""

    def __init__(self, root: Path) -> None:
        self._file = ParsedFile(root / USERS_FILE, _MOST_BYTES, _passwd_names)
        self._ranges = ParsedFile(root / SUBUIDS_FILE, _MOST_BYTES, _subuid_ranges)

    def name(self, number: int) -> str:
        """Return the user's name, or the number if there is no name.

        A number that was set aside for the containers of a user is that user, unless it is a user of its own.
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
        if len(fields) > 2 and _NAME.fullmatch(fields[0]) and _NUMBER.fullmatch(fields[2]):
            names.setdefault(int(fields[2]), fields[0])
    return names


def _subuid_ranges(text: bytes) -> list[_Range]:
    """Return the ranges in order. Those that overlap prove nothing and are left out."""
    ranges: list[_Range] = []
    for line in text.decode("utf-8", "replace").split("\n"):
        fields = line.split(":")
        if len(fields) == 3 and all(_NUMBER.fullmatch(field) for field in fields[1:]):
            owner, first, count = fields[0], int(fields[1]), int(fields[2])
            if count and first and (_NAME.fullmatch(owner) or _NUMBER.fullmatch(owner)):
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
