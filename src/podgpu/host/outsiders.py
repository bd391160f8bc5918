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
_SESSION = re.compile(r"/user-([0-9]{1,10})\.slice/(?:user@\1\.service|session-[^/]*\.scope)/")


class Outsiders:
    """`root` is where the machine's root is mounted."""

    def __init__(self, root: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._users = Users(root)
        self._names = {
            "docker": Names(Docker(root).name, clock),
            "podman": Names(Podman(root).name, clock),
        }

    def title(self, holder: Holder) -> str:
        """Return an empty title if the owner is unknown."""
        owner = holder.owner
        if owner and owner.container_id and owner.runtime == "slurm":
            return f"slurm/{owner.container_id}"
        if owner and owner.container_id and holder.kind == "container":
            return self._container(owner.container_id, owner.runtime or "", holder.cgroup)
        return "" if holder.user is None else f"user/{self._users.name(holder.user)}"

    def _container(self, container_id: str, runtime: str, cgroup: str) -> str:
        """Within a session, a user can name a cgroup after any container, so it counts as the user's own container."""
        names = self._names.get(runtime)
        system = runtime if names else "container"
        # Only ids of full length differ in their beginnings.
        short = container_id[:_SHORT_ID] if len(container_id) == _LONG_ID else container_id
        above, _, _ = cgroup.partition(container_id)
        if session := _SESSION.search(above):
            return f"{system}/{self._users.name(int(session[1]))}/{short}"
        name = names.get(container_id) if names else None
        return f"{system}/{name or short}"
