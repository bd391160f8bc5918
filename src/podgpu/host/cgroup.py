"""The owner of a process, by the text of its /proc/PID/cgroup.

A path is read from the root down, and the first pod counts. A container may name the cgroups below its own after
another pod, but it cannot rename the cgroups above. So nothing below a container, a Slurm job or a user's session is
believed, except below Docker, Podman and nerdctl: their containers may hold a whole node (kind, minikube).
"""

import re

from msgspec import Struct

from podgpu.model import Owner

PRIVATE = "private_cgroup_namespace"
UNRECOGNISED = "unrecognised"

# The most that the kernel can write: a path has up to 4 KiB, and each of a dozen hierarchies has a line.
_TEXT = 65536
_LINES = 64
_DEPTH = 64

_UID = r"([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})"
_QOS = r"(besteffort|burstable)"
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# The kubelet's own cgroup root comes before the name, with a dash: `kubelet-kubepods.slice`.
_PARENT = re.compile(rf"(?:[^:]*-)?kubepods(?:-{_QOS})?(?:\.slice)?|{_QOS}")
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


class Verdict(Struct, frozen=True, kw_only=True):
    """`kind` and `reason` as in `Holder`; `line` is the line that decided.

    A Slurm job belongs to the host: its owner has the runtime `slurm` and the job's number as container id.
    """

    kind: str
    line: str = ""
    owner: Owner | None = None
    reason: str = ""


def judge(text: str, *, private: bool = False) -> Verdict:
    """Weigh all lines. `private` means that the reader has its own cgroup namespace, where `/` is not the host's."""
    lines = _lines(text)
    verdicts = [_path(path, at) for path, at in lines.items() if path not in ("", "/")]
    pods = [verdict for verdict in verdicts if verdict.kind == "pod"]
    if pods:
        return _agreed(pods)
    jobs = {verdict.owner: verdict for verdict in verdicts if verdict.kind == "host" and verdict.owner}
    if len(jobs) == 1:
        return next(iter(jobs.values()))
    for kind in ("container", "unknown"):
        for verdict in verdicts:
            if verdict.kind == kind:
                return verdict
    shown = next((at for at in lines.values() if at.startswith("0::")), next(iter(lines.values()), ""))
    if not lines or (private and not verdicts):
        return Verdict(kind="unknown", line=shown, reason=PRIVATE if lines else UNRECOGNISED)
    return Verdict(kind="host", line=shown)


def _lines(text: str) -> dict[str, str]:
    """Return each path with its line, preferring the line of cgroup v2.

    Only a newline ends a line: a cgroup's name may hold any other line separator of Unicode, but never a newline.
    """
    whole = text if len(text) <= _TEXT else text[: text.rfind("\n", 0, _TEXT) + 1]
    found: dict[str, str] = {}
    for each in whole.split("\n", _LINES)[:_LINES]:
        # A path may contain colons; the fields before it may not.
        fields = each.split(":", 2)
        if len(fields) == 3 and (fields[2] not in found or each.startswith("0::")):
            found[fields[2]] = each
    return found


def _agreed(pods: list[Verdict]) -> Verdict:
    """Lines that name two pods prove neither. Two containers of the same pod prove the pod."""
    owners = [verdict.owner for verdict in pods if verdict.owner]
    if len({owner.pod_uid for owner in owners}) > 1:
        return Verdict(kind="unknown", line=pods[0].line, reason=UNRECOGNISED)
    containers = {owner.container_id for owner in owners if owner.container_id}
    if len(containers) > 1:
        owner = Owner(pod_uid=owners[0].pod_uid, qos=owners[0].qos)
        return Verdict(kind="pod", line=pods[0].line, owner=owner)
    return next((pod for pod in pods if pod.owner and pod.owner.container_id), pods[0])


def _path(path: str, at: str) -> Verdict:
    parts = [part for part in path.removesuffix(" (deleted)").split("/", _DEPTH)[:_DEPTH] if part]
    names = [part for part in parts if part != ".."]
    relative = parts[:1] == [".."]
    if not names:
        return Verdict(kind="unknown", line=at, reason=PRIVATE)
    if not relative and (job := _SLURM.fullmatch("/".join(names))):
        return Verdict(kind="host", line=at, owner=Owner(container_id=job[1], runtime="slurm"))
    entry = _entry(names, relative=relative)
    if entry is None:
        return _outside(names, at, relative=relative)
    owner = _pod(names[entry:])
    if owner is None:
        return Verdict(kind="unknown", line=at, reason=UNRECOGNISED)
    return Verdict(kind="pod", line=at, owner=owner)


def _entry(names: list[str], *, relative: bool) -> int | None:
    """Return where the kubelet's own cgroups begin, or None where a pod's name would prove nothing.

    In a private namespace the levels above the reader show as `..`, so a pod may come first.
    """
    if relative and (_POD_DIRECTORY.fullmatch(names[0]) or _PARENT.fullmatch(names[0])):
        return 0
    for at, name in enumerate(names):
        if "kubepods" in name and (_POD_SLICE.fullmatch(name) or _PARENT.fullmatch(name)):
            return at
        if name == "user.slice" or (_CONTAINER.fullmatch(name) and not _may_hold_a_node(names, at)):
            return None
        if relative and at == 0 and _CONTAINER.fullmatch(name):
            return None
    return None


def _may_hold_a_node(names: list[str], at: int) -> bool:
    container = _container(names, at)
    return container is not None and container.runtime in ("docker", "podman", "nerdctl")


def _pod(names: list[str]) -> Owner | None:
    """Return the pod at the top of the kubelet's cgroups. Only levels for quality of service may come before it."""
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
    match = _CONTAINER.fullmatch(below[0]) if below else None
    if match:
        container = None if match[2] else match[3]
        return Owner(pod_uid=uid, container_id=container, runtime=_RUNTIMES.get(match[1] or ""), qos=qos)
    named = below[0] if below and _UUID.fullmatch(below[0]) else None
    return Owner(pod_uid=uid, container_id=named, qos=qos)


def _outside(names: list[str], at: str, *, relative: bool) -> Verdict:
    for level, name in enumerate(names):
        if _FOREIGN.fullmatch(name):
            return Verdict(kind="unknown", line=at, reason=UNRECOGNISED)
        owner = _container(names, level)
        if owner and relative and level == 0:
            # A neighbour of the reader: a container of the same pod, or of no pod.
            return Verdict(kind="unknown", line=at, owner=owner, reason=PRIVATE)
        if owner:
            return Verdict(kind="container", line=at, owner=owner)
    if relative and not _HOST.fullmatch(names[0]):
        return Verdict(kind="unknown", line=at, reason=PRIVATE)
    return Verdict(kind="host", line=at)


def _container(names: list[str], at: int) -> Owner | None:
    above = names[at - 1] if at else ""
    match = _CONTAINER.fullmatch(names[at])
    if match and not match[2]:
        runtime = _RUNTIMES.get(match[1] or ("docker" if above == "docker" else ""))
        return Owner(container_id=match[3], runtime=runtime)
    if "ecs" in names[:at] and _ECS_CONTAINER.fullmatch(names[at]):
        return Owner(container_id=names[at])
    return None
