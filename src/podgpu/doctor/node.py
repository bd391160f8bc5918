"""The node's clock, and the parts that no other check knows."""

from podgpu.doctor import claim, driver, kubernetes, process
from podgpu.doctor.verdict import Machine, Verdict, down, passed, several, skipped, warned
from podgpu.model import Snapshot
from podgpu.views.glance import seconds
from podgpu.views.text import line

# Beyond the age that a snapshot may have by itself.
CLOCK_SECONDS = 10.0
STALE_INTERVALS = 3
CHECKED = frozenset({driver.PART, process.PART, kubernetes.KUBELET, *kubernetes.SOURCES, claim.DYNAMICS})


def clock(snapshot: Snapshot, machine: Machine) -> Verdict:
    if machine.is_remote:
        return _compared(snapshot, machine)
    if machine.clock_synchronised is None:
        return skipped("the kernel does not tell")
    return passed("the kernel keeps it in step") if machine.clock_synchronised else warned("nothing sets it")


def parts(snapshot: Snapshot, _: Machine) -> dict[str, Verdict]:
    return {line(one.name): down(one) for one in snapshot.parts if one.name not in CHECKED and not one.up}


def _compared(snapshot: Snapshot, machine: Machine) -> Verdict:
    """An old snapshot and a clock that is behind look alike."""
    age = machine.now - snapshot.taken_at
    if age < -CLOCK_SECONDS:
        return warned(f"the agent's clock is {seconds(-age)} ahead of this machine's")
    if age > STALE_INTERVALS * snapshot.interval_seconds + CLOCK_SECONDS:
        return warned(f"by this machine's clock the snapshot is {seconds(age)} old")
    return passed("the agent's agrees with this machine's")


def dcgm_fields(_: Snapshot, machine: Machine) -> Verdict:
    if machine.missing_fields is None:
        return skipped("no list of counters is given")
    if machine.missing_fields:
        return warned(f"not to be had: {several(list(machine.missing_fields))}")
    return passed("every counter of the list can be had")
