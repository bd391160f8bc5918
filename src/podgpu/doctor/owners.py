"""Whether it is known who is on the node: by its processes, the kubelet and the API server."""

from podgpu.catalog.agent_parts import APISERVER, DCGM, LOG_DIRS, PODRESOURCES, PODS_API, PROCFS, SWITCHES, AgentPart
from podgpu.doctor.check import (
    BY_REASON,
    CheckResult,
    Machine,
    Status,
    by_state,
    check,
    claims,
    down,
    failed,
    first_hand,
    holders,
    passed,
    several,
    skipped,
    state_of,
    warned,
    works,
)
from podgpu.insight.advice import next_step
from podgpu.model import Fault, Holder, Snapshot
from podgpu.numbers import count, duration
from podgpu.views.text import line

SOURCES = (PODS_API, APISERVER, LOG_DIRS)
WITH_ANNOTATIONS = (PODS_API, APISERVER)
OF_KUBERNETES = frozenset(part.name for part in (PODRESOURCES, PODS_API, APISERVER))
NO_KUBERNETES = skipped("no sign of Kubernetes here")
# Reasons for an unknown process that another check reports, or that go away by themselves.
REPORTED_ELSEWHERE = frozenset({"no_host_pid", "hidden", "exited"})
NOT_LOOKED_AT = skipped("no owners of processes are looked up")


@check(
    "proc.host-pid",
    "podgpu is in the node's PID namespace, so that it and the driver use the same PIDs.",
    "Set hostPID: true on the agent's pod.",
)
def host_pid(snapshot: Snapshot, _: Machine) -> CheckResult:
    return by_state(PROCFS, snapshot, "podgpu sees the node's processes by their own PIDs") or NOT_LOOKED_AT


@check(
    "proc.hidepid",
    "/proc shows the processes of other users.",
    "Run the agent as root, or mount /proc without hidepid.",
)
def hidden(snapshot: Snapshot, machine: Machine) -> CheckResult:
    if state_of(PROCFS, snapshot) is None:
        return NOT_LOOKED_AT
    found = [holder for holder in holders(snapshot) if holder.reason == "hidden"]
    advice = next_step(Fault(reason="hidden"))
    if found:
        return failed(f"/proc hides {count(len(found), 'process')} on a GPU", advice)
    if machine.hides_processes:
        return warned("/proc shows only our own processes", advice)
    return passed("/proc hides no process")


@check(
    "proc.owners",
    "The owner of each process on a GPU can be read from its cgroup.",
    "docs/operations.md explains each reason. Please report a cgroup that podgpu does not know.",
)
def owners(snapshot: Snapshot, _: Machine) -> CheckResult:
    found = holders(snapshot)
    if not found:
        return skipped("no process is on a GPU, or none can be seen")
    if strange := [holder for holder in found if holder.reason and holder.reason not in REPORTED_ELSEWHERE]:
        return warned(several([_described(holder) for holder in strange], most=2))
    return passed(f"{count(len(found), 'process')} looked up, nothing unusual")


@check(
    "proc.switches",
    "The driver's log of context switches can be read, where it is enabled, and hides no process.",
    "docs/switches.md lists what it needs.",
)
def switches(snapshot: Snapshot, _: Machine) -> CheckResult:
    state = state_of(SWITCHES, snapshot)
    if state is None:
        return skipped("it is off: --switches=off")
    if not state.up or state.fault:
        return down(state)
    read = [card for card in snapshot.cards if card.balance and card.balance.switching_ratio is not None]
    return passed(f"read on {count(len(read), 'GPU')}" if read else "no GPU is shared now")


def _described(holder: Holder) -> str:
    evidence = f" ({line(holder.cgroup)})" if holder.cgroup else ""
    return f"PID {holder.pid}: {line(holder.reason)}{evidence}"


@check("kubelet.socket", "The kubelet's pod-resources socket answers.", BY_REASON)
def socket(snapshot: Snapshot, machine: Machine) -> CheckResult:
    state = state_of(PODRESOURCES, snapshot)
    if state is not None:
        return passed(f"answers in {duration(state.duration_seconds)}") if state.up else down(state)
    if not is_kubernetes(snapshot, machine):
        return NO_KUBERNETES
    if state_of(DCGM, snapshot) and not first_hand(snapshot):
        return skipped("the pages name the holders: no kubelet is used")
    where = f"there is no {machine.kubelet}" if machine.kubelet else "the agent cannot see the kubelet's folder"
    return failed(where, next_step(Fault(reason="no_socket")))


@check(
    "kubelet.allocations",
    "The kubelet reports which device is allocated to which container.",
    "See claims.missing and sharing.unknown-ids.",
)
def allocations(snapshot: Snapshot, machine: Machine) -> CheckResult:
    if not works(PODRESOURCES, snapshot):
        return _if_kubernetes(skipped("needs kubelet.socket"), snapshot, machine)
    found = list(claims(snapshot))
    if not found:
        return skipped("no container holds a GPU")
    containers = {claim.container for claim in found}
    return passed(f"{count(len(found), 'claim')} of {count(len(containers), 'container')}")


@check("kubelet.pods-api", "The kubelet's Pods API answers, where there is one.", BY_REASON)
def pods_api(snapshot: Snapshot, machine: Machine) -> CheckResult:
    missing = skipped("there is no pods-api folder; it comes with Kubernetes 1.37")
    return _pod_source(PODS_API, snapshot, "answers") or _if_kubernetes(missing, snapshot, machine)


@check("api.access", "The API server lets podgpu list and watch pods.", BY_REASON)
def api_access(snapshot: Snapshot, machine: Machine) -> CheckResult:
    if found := _pod_source(APISERVER, snapshot, "pods can be listed and watched"):
        return found
    if machine.kube_api == "off":
        return skipped("not asked: --kube.api=off")
    return skipped("the agent asks none" if machine.is_remote else "no service account here")


@check(
    "pods.source",
    "There is a list of the pods on this node.",
    "Give the agent's service account the role in docs/operations.md, or mount /var/log/pods.",
)
def source(snapshot: Snapshot, machine: Machine) -> CheckResult:
    if working := [part.name for part in SOURCES if works(part, snapshot)]:
        return passed(f"by {working[0]}" + (f", else {', '.join(working[1:])}" if working[1:] else ""))
    return _if_kubernetes(failed("no source lists the pods of this node"), snapshot, machine)


@check(
    "pods.log-dirs",
    "The kubelet's log folders can be read. They name the pods if nothing else does.",
    BY_REASON,
)
def log_dirs(snapshot: Snapshot, machine: Machine) -> CheckResult:
    found = _pod_source(LOG_DIRS, snapshot, "can be read")
    return found or _if_kubernetes(skipped("not mounted"), snapshot, machine)


@check(
    "pods.annotations",
    "The pods' annotations can be read. Many schedulers write into them which pod has which card.",
    "Give the agent's service account the role in docs/operations.md, and mount its token.",
)
def annotations(snapshot: Snapshot, machine: Machine) -> CheckResult:
    if working := [part.name for part in WITH_ANNOTATIONS if works(part, snapshot)]:
        return passed(f"by {working[0]}")
    return _if_kubernetes(warned("no source reports the pods' labels, owners and annotations"), snapshot, machine)


@check(
    "pods.names",
    "Every pod on a GPU is in the list of pods.",
    "Set NODE_NAME from spec.nodeName: --node-name must be the node's name in Kubernetes.",
)
def names(snapshot: Snapshot, machine: Machine) -> CheckResult:
    if not any(works(part, snapshot) for part in SOURCES):
        return _if_kubernetes(skipped("needs pods.source"), snapshot, machine)
    nameless = {holder.owner.pod_uid for holder in holders(snapshot) if holder.owner and _is_nameless(holder)}
    unlisted = {
        (claim.container.namespace, claim.container.pod) for claim in claims(snapshot) if not claim.container.pod_uid
    }
    # A missing pod shows up by its name among the claims and by its UID among the processes: it may be one pod.
    if missing := max(len(nameless), len(unlisted)):
        return warned(f"{count(missing, 'pod')} on a GPU not in the list of pods")
    return passed("every pod on a GPU is in the list of pods")


def is_kubernetes(snapshot: Snapshot, machine: Machine) -> bool:
    """Whether this should be a Kubernetes node, whatever is mounted."""
    return (
        machine.in_pod
        or any(part.name in OF_KUBERNETES for part in snapshot.parts)
        or any(holder.kind == "pod" for holder in holders(snapshot))
    )


def _is_nameless(holder: Holder) -> bool:
    return holder.kind == "pod" and holder.container is None and not holder.reason


def _if_kubernetes(verdict: CheckResult, snapshot: Snapshot, machine: Machine) -> CheckResult:
    return verdict if is_kubernetes(snapshot, machine) else NO_KUBERNETES


def _pod_source(part: AgentPart, snapshot: Snapshot, fine: str) -> CheckResult | None:
    """A source that is down matters little while another source reports as much."""
    found = by_state(part, snapshot, fine)
    is_replaced = any(works(other, snapshot) for other in WITH_ANNOTATIONS)
    return warned(found.detail, found.advice) if found and found.status is Status.FAIL and is_replaced else found
