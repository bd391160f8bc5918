"""Where the kubelet puts the cgroup of a container. One process of a pod shows how this node names them all."""

import re

from msgspec import Struct

from podgpu.model import Owner

QOS = ("guaranteed", "burstable", "besteffort")
_SLICE = re.compile(r"(.*?kubepods)(?:-burstable|-besteffort)?-pod[0-9a-f_]{32,36}\.slice")


class CgroupStyle(Struct, frozen=True, kw_only=True):
    """`root` is the cgroup above all pods, `kubepods` in most cases, with its path; `container` has `{id}` in it.

    The kubelet's two drivers name the levels below the root differently.
    """

    root: str
    is_systemd: bool
    container: str

    def path(self, pod_uid: str, qos: str, container_id: str) -> str:
        """Return the path as cAdvisor prints it. Raises ValueError for an unknown quality of service."""
        if qos not in QOS:
            raise ValueError(qos)
        level = "" if qos == "guaranteed" else qos
        name = self.container.format(id=container_id)
        if not self.is_systemd:
            return "/".join(filter(None, (self.root, level, f"pod{pod_uid}", name)))
        above, _, base = self.root.rpartition("/")
        pod = "-".join(filter(None, (base, level, f"pod{pod_uid.replace('-', '_')}")))
        return "/".join((above, *_slices(pod), name))


def style_of(line: str, owner: Owner | None) -> CgroupStyle | None:
    """Learn from a line of a pod's process. None if it is named as neither driver would.

    Seen from another cgroup namespace, a path begins where it leaves the reader's own: then the root is the usual one.
    """
    if owner is None or not (owner.pod_uid and owner.container_id):
        return None
    parts = line.split(":", 2)[-1].strip("/").split("/")
    is_relative = parts[0] == ".."
    names = [part for part in parts if part != ".."]
    at = next((number for number, name in enumerate(names) if owner.container_id in name), 0)
    if not at:
        return None
    container, pod = names[at].replace(owner.container_id, "{id}"), names[at - 1]
    if found := _SLICE.fullmatch(pod):
        # systemd puts each slice into the one that it is named after.
        slices = _slices(pod.removesuffix(".slice"))
        if not is_relative and names[at - len(slices) : at] != slices:
            return None
        above = [] if is_relative else names[: at - len(slices)]
        return CgroupStyle(root="/".join(("", *above, found[1])), is_systemd=True, container=container)
    if pod != f"pod{owner.pod_uid}":
        return None
    above = ["kubepods"] if is_relative else [name for name in names[: at - 1] if name not in QOS]
    return CgroupStyle(root=f"/{'/'.join(above)}", is_systemd=False, container=container)


def _slices(name: str) -> list[str]:
    """`a-b` is the slice `a-b.slice` in the slice `a.slice`."""
    parts = name.split("-")
    return [f"{'-'.join(parts[: count + 1])}.slice" for count in range(len(parts))]
