"""Whether the processes on the cards can be seen and told apart."""

from podgpu.catalog.agent_parts import PROCFS, SWITCHES
from podgpu.doctor.check import (
    CheckResult,
    Machine,
    check,
    down,
    failed,
    holders,
    passed,
    several,
    skipped,
    state_of,
    warned,
)
from podgpu.insight.advice import next_step
from podgpu.model import Fault, Holder, Snapshot
from podgpu.numbers import count
from podgpu.views.text import line

# Reasons for an unknown process that another check reports, or that go away by themselves.
REPORTED_ELSEWHERE = frozenset({"no_host_pid", "hidden", "exited"})
NOT_LOOKED_AT = skipped("nobody looks processes up")


@check(
    "proc.host-pid",
    "podgpu is in the node's PID namespace, so that it and the driver use the same PIDs.",
    "Set hostPID: true on the agent's pod.",
)
def host_pid(snapshot: Snapshot, _: Machine) -> CheckResult:
    state = state_of(PROCFS, snapshot)
    if state is None:
        return NOT_LOOKED_AT
    return passed("podgpu sees the node's processes by their own PIDs") if state.up else down(state)


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
    strange = [holder for holder in found if holder.reason and holder.reason not in REPORTED_ELSEWHERE]
    if strange:
        return warned(several([_described(holder) for holder in strange], most=2))
    return passed(f"{count(len(found), 'process')} looked up, nothing unusual")


@check(
    "proc.switches",
    "The driver's log of context switches can be read, where it is asked for, and hides nobody.",
    "docs/switches.md says what it takes.",
)
def switches(snapshot: Snapshot, _: Machine) -> CheckResult:
    state = state_of(SWITCHES, snapshot)
    if state is None:
        return skipped("nobody asked for it: --switches=off")
    if not state.up:
        return down(state)
    if state.fault:
        return down(state)
    read = [card for card in snapshot.cards if card.balance and card.balance.switching_ratio is not None]
    return passed(f"read on {count(len(read), 'GPU')}" if read else "no GPU is shared now")


def _described(holder: Holder) -> str:
    evidence = f" ({line(holder.cgroup)})" if holder.cgroup else ""
    return f"PID {holder.pid}: {line(holder.reason)}{evidence}"


CHECKS = (
    host_pid,
    hidden,
    owners,
    switches,
)
