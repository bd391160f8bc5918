"""The owner of a process, by the text of its /proc/PID/cgroup, and the path of a container's cgroup.

A path is read from the root down, and the first pod counts. The owner of a cgroup may name the cgroups below it after
any pod, but cannot rename the cgroups above. So a pod is believed only below the root of this node's kubelet. A reader
that runs in a pod knows that root by its own path, wherever the node itself may be nested (kind, LXC). Other readers
believe the places where only the system makes cgroups.

The cgroup of one pod shows how this node names them all.
"""

import re

from msgspec import Struct

from podgpu.model import Owner

PRIVATE = "private_cgroup_namespace"
UNRECOGNISED = "unrecognised"

# The most that the kernel can write: a path has up to 4 KiB, and each of a dozen hierarchies has a line.
_MOST_CHARACTERS = 65536
_MOST_LINES = 64
_MOST_LEVELS = 64

_UID = r"([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})"
_QOS = r"(besteffort|burstable)"
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# The kubelet's own cgroup root comes before the name, with a dash: `kubelet-kubepods.slice`.
_PARENT = re.compile(rf"(?:[^:]*-)?kubepods(?:-{_QOS})?(?:\.slice)?|{_QOS}")
# What may be above them: nothing, a slice they are named after, or the service that runs the containers.
_ABOVE = re.compile(
    r"|kubelet|(?!user\.)[^/]+\.slice"
    r"|(?:(?!user\.)[^/]+\.slice/)?(?:snap\.microk8s\.daemon-[a-z0-9]+"
    r"|containerd|crio|docker|cri-docker|kubelet|k3s|k3s-agent|rke2-server|rke2-agent|k0scontroller|k0sworker)\.service"
)
_POD_DIRECTORY = re.compile(rf"pod{_UID}")
_POD_SLICE = re.compile(rf"(?:[^:]*-)?kubepods(?:-{_QOS})?-pod{_UID}\.slice(?::(.*))?")
_CONTAINER = re.compile(
    r"(?:(cri-containerd|crio|cri-o|docker|libpod-payload|libpod|nerdctl)(-conmon)?[-:])?([0-9a-f]{64})(?:\.scope)?"
)
_ECS_CONTAINER = re.compile(r"[0-9a-f]{32}-[0-9]+")
# Containers of systems that show no id. Kata's belongs to a pod that the path does not name.
_FOREIGN = re.compile(r"kata_overhead|lxc|lxc\.payload.*|garden|machine-.*\.scope")
_HOST = re.compile(r".*\.slice|init\.scope")
# A Slurm job, where only the system names cgroups: in version 2 below system slices, in version 1 at the top.
_SLURM = re.compile(
    r"(?:(?:(?!user\.slice/)[^/]+\.slice/)*(?:[^/]+_)?slurmstepd\.scope|slurm(?:_[^/]+)?/uid_[0-9]+)"
    r"/job_([0-9]{1,10})(?:/.*)?",
    re.DOTALL,
)

_RUNTIMES = {
    "cri-containerd": "containerd",
    "crio": "cri-o",
    "cri-o": "cri-o",
    "docker": "docker",
    "libpod": "podman",
    "libpod-payload": "podman",
    "nerdctl": "nerdctl",
}


class CgroupMatch(Struct, frozen=True, kw_only=True):
    """`kind` and `reason` as in `Holder`; `line` is the line that decided.

    A Slurm job belongs to the host: its owner has the runtime `slurm` and the job's number as container id.
    """

    kind: str
    line: str = ""
    owner: Owner | None = None
    reason: str = ""


def classify(text: str, *, private: bool = False, roots: frozenset[str] | None = None) -> CgroupMatch:
    """Consider all lines. `private` means that the reader has its own cgroup namespace, where `/` is not the host's.

    `roots` are where the kubelet's cgroups begin, as `roots_above` found them for the reader.
    """
    lines = _lines(text)
    matches = [_classify_path(path, line, roots) for path, line in lines.items() if path not in ("", "/")]
    if pods := [match for match in matches if match.kind == "pod"]:
        return _agreed(pods)
    jobs = {match.owner: match for match in matches if match.kind == "host" and match.owner}
    if len(jobs) == 1:
        return next(iter(jobs.values()))
    for kind in ("container", "unknown"):
        for match in matches:
            if match.kind == kind:
                return match
    shown = next((line for line in lines.values() if line.startswith("0::")), next(iter(lines.values()), ""))
    if not lines or (private and not matches):
        return _unknown(shown, PRIVATE if lines else UNRECOGNISED)
    return CgroupMatch(kind="host", line=shown)


def _unknown(line: str, reason: str = UNRECOGNISED) -> CgroupMatch:
    return CgroupMatch(kind="unknown", line=line, reason=reason)


def roots_above(text: str) -> frozenset[str] | None:
    """Return the paths above the pod in the reader's own file; None if the reader is in no pod, or cannot see it."""
    found = set()
    for path in _lines(text):
        names, relative = _names(path)
        entry = None if relative else _kubelet_level(names)
        if entry is not None and _pod(names[entry:]):
            found.add("/".join(names[:entry]))
    return frozenset(found) or None


def _lines(text: str) -> dict[str, str]:
    """Return each path with its line, preferring the line of cgroup v2.

    Only a newline ends a line: a cgroup's name may hold any other line separator of Unicode, but never a newline.
    """
    whole = text if len(text) <= _MOST_CHARACTERS else text[: text.rfind("\n", 0, _MOST_CHARACTERS) + 1]
    found: dict[str, str] = {}
    for line in whole.split("\n", _MOST_LINES)[:_MOST_LINES]:
        # A path may contain colons; the fields before it may not.
        fields = line.split(":", 2)
        if len(fields) == 3 and (fields[2] not in found or line.startswith("0::")):
            found[fields[2]] = line
    return found


def _agreed(pods: list[CgroupMatch]) -> CgroupMatch:
    """Lines that name two pods prove neither. Two containers of the same pod prove the pod."""
    owners = [match.owner for match in pods if match.owner]
    if len({owner.pod_uid for owner in owners}) > 1:
        return _unknown(pods[0].line)
    containers = {owner.container_id for owner in owners if owner.container_id}
    if len(containers) > 1:
        owner = Owner(pod_uid=owners[0].pod_uid, qos=owners[0].qos)
        return CgroupMatch(kind="pod", line=pods[0].line, owner=owner)
    return next((pod for pod in pods if pod.owner and pod.owner.container_id), pods[0])


def _classify_path(path: str, line: str, roots: frozenset[str] | None) -> CgroupMatch:
    names, relative = _names(path)
    if not names:
        return _unknown(line, PRIVATE)
    if not relative and (job := _SLURM.fullmatch("/".join(names))):
        return CgroupMatch(kind="host", line=line, owner=Owner(container_id=job[1], runtime="slurm"))
    entry = _entry(names, relative=relative)
    if entry is not None and (relative or _is_the_kubelets(names, entry, roots)):
        owner = _pod(names[entry:])
        return CgroupMatch(kind="pod", line=line, owner=owner) if owner else _unknown(line)
    above = names[: _kubelet_level(names)]
    return _outside(above, line, relative=relative) if above else _unknown(line)


def _names(path: str) -> tuple[list[str], bool]:
    """Return the levels, and whether the path is relative to the reader's own cgroup: then it begins with `..`."""
    parts = [part for part in path.removesuffix(" (deleted)").split("/", _MOST_LEVELS)[:_MOST_LEVELS] if part]
    return [part for part in parts if part != ".."], parts[:1] == [".."]


def _entry(names: list[str], *, relative: bool) -> int | None:
    """Return the level where the kubelet's cgroups may begin.

    A reader in a private namespace sees other pods by paths relative to its own, which begin at the first level.
    """
    if not relative:
        return _kubelet_level(names)
    first = names[0]
    is_kubelets = _POD_DIRECTORY.fullmatch(first) or _kubelet_level([first]) == 0 or _PARENT.fullmatch(first)
    return 0 if is_kubelets else None


def _kubelet_level(names: list[str]) -> int | None:
    """Return the first level that is named like the kubelet's."""
    for at, name in enumerate(names):
        if "kubepods" in name and (_POD_SLICE.fullmatch(name) or _PARENT.fullmatch(name)):
            return at
    return None


def _is_the_kubelets(names: list[str], entry: int, roots: frozenset[str] | None) -> bool:
    above = "/".join(names[:entry])
    if roots is not None:
        return above in roots
    # systemd names a slice after the one above it
    is_fitting = not above.endswith(".slice") or names[entry].startswith(f"{above.removesuffix('.slice')}-")
    return is_fitting and bool(_ABOVE.fullmatch(above))


def _pod(names: list[str]) -> Owner | None:
    """Return the pod at the top of the kubelet's cgroups. Only levels of the QoS class may come before it."""
    qos = None
    for at, name in enumerate(names):
        if match := _POD_SLICE.fullmatch(name):
            rest = [match[3]] if match[3] is not None else names[at + 1 :]
            return _owner(match[2], match[1] or qos or "guaranteed", rest)
        if match := _POD_DIRECTORY.fullmatch(name):
            return _owner(match[1], qos or ("guaranteed" if at else None), names[at + 1 :])
        match = _PARENT.fullmatch(name)
        if match is None:
            return None
        qos = match[1] or match[2] or qos
    return None


def _owner(uid: str, qos: str | None, below: list[str]) -> Owner:
    """Only the level right below the pod is the runtime's. All deeper levels are the container's own."""
    uid = uid.replace("_", "-")
    name = below[0] if below else ""
    if match := _CONTAINER.fullmatch(name):
        container = None if match[2] else match[3]
        return Owner(pod_uid=uid, container_id=container, runtime=_RUNTIMES.get(match[1] or ""), qos=qos)
    return Owner(pod_uid=uid, container_id=name if _UUID.fullmatch(name) else None, qos=qos)


def _outside(names: list[str], line: str, *, relative: bool) -> CgroupMatch:
    for level, name in enumerate(names):
        if _FOREIGN.fullmatch(name):
            return _unknown(line)
        owner = _container(names, level)
        if owner and relative and level == 0:
            # A neighbour of the reader: a container of the same pod, or of no pod.
            return CgroupMatch(kind="unknown", line=line, owner=owner, reason=PRIVATE)
        if owner:
            return CgroupMatch(kind="container", line=line, owner=owner)
    if relative and not _HOST.fullmatch(names[0]):
        return _unknown(line, PRIVATE)
    return CgroupMatch(kind="host", line=line)


def _container(names: list[str], at: int) -> Owner | None:
    above = names[at - 1] if at else ""
    match = _CONTAINER.fullmatch(names[at])
    if match and not match[2]:
        runtime = _RUNTIMES.get(match[1] or ("docker" if above == "docker" else ""))
        return Owner(container_id=match[3], runtime=runtime)
    if "ecs" in names[:at] and _ECS_CONTAINER.fullmatch(names[at]):
        return Owner(container_id=names[at])
    return None


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
        """Return the path as cAdvisor prints it. Raises ValueError for an unknown QoS class."""
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
    """Return the style that a line of a pod's process shows; None if neither driver names cgroups like that.

    A relative path, as seen from a private cgroup namespace, does not show the root: then the usual one is assumed.
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
