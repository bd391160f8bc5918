"""Whether the kubelet and the API server tell who is on the node."""

from podgpu.doctor.driver import count, is_by_pages
from podgpu.doctor.verdict import (
    Machine,
    Status,
    Verdict,
    down,
    failed,
    part_of,
    passed,
    skipped,
    warned,
)
from podgpu.model import Fault, Holder, PartStatus, Snapshot
from podgpu.views.advice import next_step
from podgpu.views.glance import seconds

KUBELET, PODS_API, API_SERVER, LOG_DIRS = "podresources", "pods-api", "apiserver", "log-dirs"
SOURCES = (PODS_API, API_SERVER, LOG_DIRS)
WITH_ANNOTATIONS = (PODS_API, API_SERVER)
NO_KUBERNETES = skipped("no sign of Kubernetes here")


def socket(snapshot: Snapshot, machine: Machine) -> Verdict:
    part = part_of(snapshot, KUBELET)
    if part is not None:
        return passed(f"answers in {seconds(part.duration_seconds)}") if part.up else down(part)
    if not is_kubernetes(snapshot, machine):
        return NO_KUBERNETES
    if is_by_pages(snapshot):
        return skipped("the pages tell who holds what: no kubelet is asked")
    where = f"there is no {machine.kubelet}" if machine.kubelet else "the agent has no kubelet's folder"
    return failed(where, next_step(Fault(reason="no_socket")))


def allocations(snapshot: Snapshot, machine: Machine) -> Verdict:
    part = part_of(snapshot, KUBELET)
    if part is None or not part.up:
        return skipped("needs kubelet.socket") if is_kubernetes(snapshot, machine) else NO_KUBERNETES
    holders = {claim.container for claim in snapshot.claims}
    if not holders:
        return skipped("no container holds a GPU")
    return passed(f"{count(len(snapshot.claims), 'claim')} of {count(len(holders), 'container')}")


def pods_api(snapshot: Snapshot, machine: Machine) -> Verdict:
    part = part_of(snapshot, PODS_API)
    if part is not None:
        return passed("answers") if part.up else _unless_told(part, snapshot)
    if not is_kubernetes(snapshot, machine):
        return NO_KUBERNETES
    return skipped("no pods-api folder; it comes with Kubernetes 1.37")


def api_access(snapshot: Snapshot, machine: Machine) -> Verdict:
    part = part_of(snapshot, API_SERVER)
    if part is not None:
        return passed("pods can be listed and watched") if part.up else _unless_told(part, snapshot)
    if machine.kube_api == "off":
        return skipped("not asked: --kube.api=off")
    return skipped("the agent asks none" if machine.is_remote else "no service account here")


def source(snapshot: Snapshot, machine: Machine) -> Verdict:
    working = [name for name in SOURCES if _works(snapshot, name)]
    if working:
        return passed(f"by {working[0]}" + (f", else {', '.join(working[1:])}" if working[1:] else ""))
    return failed("nobody tells the pods of this node") if is_kubernetes(snapshot, machine) else NO_KUBERNETES


def log_dirs(snapshot: Snapshot, machine: Machine) -> Verdict:
    part = part_of(snapshot, LOG_DIRS)
    if part is not None:
        return passed("can be read") if part.up else _unless_told(part, snapshot)
    return skipped("not mounted") if is_kubernetes(snapshot, machine) else NO_KUBERNETES


def annotations(snapshot: Snapshot, machine: Machine) -> Verdict:
    working = [name for name in WITH_ANNOTATIONS if _works(snapshot, name)]
    if working:
        return passed(f"by {working[0]}")
    if not is_kubernetes(snapshot, machine):
        return NO_KUBERNETES
    return warned("nobody tells the pods' labels, owners and annotations")


def names(snapshot: Snapshot, machine: Machine) -> Verdict:
    if not any(_works(snapshot, name) for name in SOURCES):
        return skipped("needs pods.source") if is_kubernetes(snapshot, machine) else NO_KUBERNETES
    nameless = {one.owner.pod_uid for one in snapshot.holders if one.owner and _is_nameless(one)}
    unlisted = [claim.container for claim in snapshot.claims if not claim.container.pod_uid]
    # A pod that is missing shows by its name here and by its UID there: nobody can tell that it is one.
    missing = max(len(nameless), len({(one.namespace, one.pod) for one in unlisted}))
    if missing:
        return warned(f"{count(missing, 'pod')} on a GPU not in the list of pods")
    return passed("every pod on a GPU is in the list of pods")


def is_kubernetes(snapshot: Snapshot, machine: Machine) -> bool:
    """Whether this should be a node of Kubernetes, whatever is mounted."""
    known = {part.name for part in snapshot.parts}
    return (
        machine.in_pod
        or not known.isdisjoint({KUBELET, PODS_API, API_SERVER})
        or any(holder.kind == "pod" for holder in snapshot.holders)
    )


def _is_nameless(holder: Holder) -> bool:
    return holder.kind == "pod" and holder.container is None and not holder.reason


def _works(snapshot: Snapshot, name: str) -> bool:
    part = part_of(snapshot, name)
    return part is not None and part.up


def _unless_told(part: PartStatus, snapshot: Snapshot) -> Verdict:
    """A source that is down costs little while another one tells as much."""
    verdict = down(part)
    told = any(_works(snapshot, other) for other in WITH_ANNOTATIONS)
    return Verdict(Status.WARN, verdict.detail, verdict.advice) if told else verdict
