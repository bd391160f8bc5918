"""The owner of a process outside Kubernetes, as a title: `docker/web`, `slurm/1234`, `user/alice`."""

import re
import time
from collections.abc import Callable
from pathlib import Path

from podgpu.host.docker import Docker
from podgpu.host.names import Names
from podgpu.host.podman import Podman
from podgpu.host.users import Users
from podgpu.model import Holder

_LONG_ID, _SHORT_ID = 64, 12
# Only below this the cgroup is the user's own: a user of Docker can put a container into any user's slice.
_SESSION = re.compile(
    r"/user\.slice/user-([0-9]{1,10})\.slice/(?:user@\1\.service|session-[^/]*\.scope)/.*", re.DOTALL
)
# Where runtimes put containers, and nobody else can name a cgroup: the top, slices, and folders at the top.
_RUNTIMES = re.compile(
    r"/(?:[^/]+\.slice/)*|/(?:docker|libpod_parent|default|moby|nerdctl|actions_job|ecs(?:/[^/.]+){0,2})/"
)


class Outsiders:
    """`root` is where the machine's root is mounted."""

    def __init__(self, root: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._users = Users(root)
        docker, podman = Docker(root), Podman(root)
        self._names = {"docker": Names(docker.name, clock), "podman": Names(podman.name, clock)}
        self._places = {"docker": Names(docker.place, clock), "podman": Names(podman.place, clock)}

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
        place, found, _ = _path(cgroup).partition(container_id)
        above = place[: place.rfind("/") + 1]
        if session := _SESSION.fullmatch(above):
            system = runtime if runtime in self._names else "container"
            return f"{system}/{self._users.name(int(session[1]))}/{short}"
        if not _RUNTIMES.fullmatch(above):
            runtime = self._voucher(container_id, runtime, place) if found else ""
            if not runtime:
                return None
        names = self._names.get(runtime)
        name = names.get(container_id) if names else None
        return f"{runtime if names else 'container'}/{name or short}"

    def _voucher(self, container_id: str, runtime: str, place: str) -> str:
        """Return the runtime whose own files say that it put the container there; nothing if none does."""
        path = f"{place}{container_id}"
        asked = [runtime] if runtime else self._places
        return next(
            (one for one in asked if one in self._places and self._places[one].get(container_id) == path), ""
        )


def _path(line: str) -> str:
    """Return the path of a line of /proc/PID/cgroup. Seen from another cgroup, it begins with the levels to go up."""
    path = line.split(":", 2)[-1]
    while path.startswith("/../"):
        path = path.removeprefix("/..")
    return path
