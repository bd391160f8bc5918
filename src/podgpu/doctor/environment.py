"""The node's clock, the counters that were asked for, and the parts that no other check covers."""

from podgpu.catalog.agent_parts import NVML, PODRESOURCES, PROCFS, RESOURCE_CLAIMS, SWITCHES
from podgpu.catalog.renames import RENAMES, Rename, in_force
from podgpu.doctor.check import BY_REASON, CheckResult, Machine, check, down, passed, several, skipped, warned
from podgpu.doctor.owners import SOURCES
from podgpu.model import PartStatus, Snapshot
from podgpu.numbers import duration
from podgpu.views.dialects._dcgm.entity import unnamed
from podgpu.views.text import line

# Beyond the age that a snapshot may have anyway.
CLOCK_SECONDS = 10.0
STALE_INTERVALS = 3
CHECKED = frozenset(part.name for part in (NVML, PROCFS, PODRESOURCES, *SOURCES, RESOURCE_CLAIMS, SWITCHES))

NOT_TOLD = skipped("an agent does not tell its options: run podgpu doctor with them on its node")


@check(
    "node.clock",
    "NTP or the like keeps the clock right; the clock of a remote agent agrees with this machine's.",
    "Start chrony or systemd-timesyncd on the node. A wrong clock breaks TLS and shifts every sample.",
)
def clock(snapshot: Snapshot, machine: Machine) -> CheckResult:
    if machine.is_remote:
        return _compared(snapshot, machine)
    if machine.clock_synchronised is None:
        return skipped("the kernel does not report it")
    return passed("the kernel keeps it in step") if machine.clock_synchronised else warned("it is not synchronised")


@check(
    "dialect.dcgm-fields",
    "Every counter of --dcgm.collectors is available without DCGM.",
    "Remove the field from the list, or read dcgm-exporter's own page: docs/compatibility.md.",
)
def dcgm_fields(_: Snapshot, machine: Machine) -> CheckResult:
    if machine.is_remote:
        return NOT_TOLD
    if machine.missing_fields is None:
        return skipped("no list of counters is given")
    if machine.missing_fields:
        # All of them: each has to be taken from the list, or from a dashboard.
        return warned(f"not available: {'; '.join(machine.missing_fields)}")
    return passed("every counter on the list is available")


@check(
    "dialect.shared-pods",
    "On a dcgm page, a query for a pod finds it, also on a GPU that several pods share.",
    "If OpenCost, KEDA or the like ask for pods, set --dcgm.per-container=on. Queries about cards then need "
    "max by (UUID): docs/migration.md has the figures.",
)
def shared_pods(snapshot: Snapshot, machine: Machine) -> CheckResult:
    if machine.is_remote:
        return NOT_TOLD
    if machine.splits_shared is None:
        return skipped("no address speaks dcgm")
    shared = [f"GPU {index}" for index in unnamed(snapshot)]
    if not shared:
        return passed("no GPU is shared by several pods now")
    if machine.splits_shared:
        return passed(f"each container has rows of its own: {several(shared)}")
    return warned(f"pods that share a GPU have no rows of their own: {several(shared)}")


@check(
    "names.renamed",
    "No metric that this version serves is about to lose its name.",
    "Use the new name in queries, alerts and dashboards: docs/stability.md.",
)
def renamed(snapshot: Snapshot, _: Machine) -> CheckResult:
    return judged(snapshot.version, RENAMES)


def judged(version: str, renames: tuple[Rename, ...]) -> CheckResult:
    going = in_force(version, renames)
    if not going:
        return passed("no metric is about to lose its name")
    return warned(several([f"{rename.old} is now {rename.new}, and goes in {rename.until}" for rename in going]))


@check("part.*", "Every other part of podgpu works.", BY_REASON)
def parts(snapshot: Snapshot, _: Machine) -> dict[str, CheckResult]:
    """Report parts that are down, or work and lack something, unless another check does."""
    return {line(part.name): down(part) for part in snapshot.parts if _is_unreported(part)}


def _is_unreported(part: PartStatus) -> bool:
    if part.up:
        return part.fault is not None and part.name != SWITCHES.name
    return part.name not in CHECKED


def _compared(snapshot: Snapshot, machine: Machine) -> CheckResult:
    """An old snapshot and a clock that is behind look alike."""
    age = machine.now - snapshot.taken_at
    if age < -CLOCK_SECONDS:
        return warned(f"the agent's clock is {duration(-age)} ahead of this machine's")
    if age > STALE_INTERVALS * snapshot.interval_seconds + CLOCK_SECONDS:
        return warned(f"by this machine's clock the snapshot is {duration(age)} old")
    return passed("the agent's clock agrees with this machine's")
