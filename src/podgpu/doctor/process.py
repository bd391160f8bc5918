"""Whether the processes on the cards can be seen and told apart."""

from podgpu.doctor.driver import count
from podgpu.doctor.verdict import Machine, Verdict, down, failed, part_of, passed, several, skipped, warned
from podgpu.model import Fault, Holder, Snapshot
from podgpu.views.advice import next_step
from podgpu.views.text import line

PART = "procfs"
# Reasons for which a process is unknown that another check tells of, or that pass.
TOLD_ELSEWHERE = frozenset({"no_host_pid", "hidden", "exited"})


def host_pid(snapshot: Snapshot, _: Machine) -> Verdict:
    part = part_of(snapshot, PART)
    if part is None:
        return skipped("processes are not looked at")
    return passed("podgpu sees the node's processes by their own PIDs") if part.up else down(part)


def hidden(snapshot: Snapshot, machine: Machine) -> Verdict:
    if part_of(snapshot, PART) is None:
        return skipped("processes are not looked at")
    found = [holder for holder in snapshot.holders if holder.reason == "hidden"]
    advice = next_step(Fault(reason="hidden"))
    if found:
        return failed(f"{count(len(found), 'process', 'processes')} on a GPU hidden in /proc", advice)
    if machine.hides_processes:
        return warned("/proc shows only our own processes", advice)
    return passed("/proc hides no process")


def owners(snapshot: Snapshot, _: Machine) -> Verdict:
    if not snapshot.holders:
        return skipped("no process is on a GPU, or none can be seen")
    strange = [one for one in snapshot.holders if one.reason and one.reason not in TOLD_ELSEWHERE]
    if strange:
        return warned(several([_described(one) for one in strange], most=2))
    return passed(f"{count(len(snapshot.holders), 'process', 'processes')} looked at, none strange")


def _described(holder: Holder) -> str:
    evidence = f" ({line(holder.cgroup)})" if holder.cgroup else ""
    return f"PID {holder.pid}: {line(holder.reason)}{evidence}"
