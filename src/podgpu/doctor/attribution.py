"""Whether all allocations of GPUs are understood, and whether the books balance."""

from collections import Counter
from collections.abc import Callable

from podgpu.catalog.agent_parts import PODRESOURCES, RESOURCE_CLAIMS
from podgpu.doctor.check import (
    NO_GPU,
    REPORT,
    CheckResult,
    Machine,
    by_problems,
    by_state,
    check,
    claims,
    holders,
    named,
    passed,
    several,
    skipped,
    warned,
    works,
)
from podgpu.insight.advice import next_step
from podgpu.insight.tenants import UNKNOWN
from podgpu.model import Balance, Card, Fault, Rest, SharingStatus, Snapshot
from podgpu.numbers import count, percent
from podgpu.views.tenants import excused_texts, full_name
from podgpu.views.text import line

MOST_EXCUSED = 16
_DOUBTS = "docs/sharing.md, What cannot be known, lists each such case, what is claimed meanwhile and what settles it."
MUCH = 0.1  # of the cards' memory, busy time or energy
NOT_YET = skipped("nothing is booked yet")


@check(
    "claims.rights",
    "The API server lets podgpu read resource claims, if pods have any.",
    "Allow the agent's service account to get resourceclaims and to list resourceslices.",
)
def rights(snapshot: Snapshot, _: Machine) -> CheckResult:
    found = by_state(RESOURCE_CLAIMS, snapshot, "resource claims can be read")
    return found or skipped("no pod has a resource claim")


@check(
    "claims.missing",
    "No pod uses a GPU that is not allocated to it.",
    "Look for a privileged container or NVIDIA_VISIBLE_DEVICES=all. `podgpu why POD` shows what is known.",
)
def missing(snapshot: Snapshot, _: Machine) -> CheckResult:
    if not works(PODRESOURCES, snapshot):
        return skipped("needs kubelet.socket")
    return by_problems(snapshot, "not_given") or passed("every pod on a GPU has an allocation")


@check(
    "claims.shares",
    "The size of every share that a pod holds is known.",
    "Nothing is charged for such a share, and bills are incomplete. For a resource claim podgpu needs the right to read"
    " it and its ResourceSlice: see claims.rights. Else the device plugin may not have registered yet.",
)
def shares(snapshot: Snapshot, _: Machine) -> CheckResult:
    return by_problems(snapshot, "unknown_share") or (
        passed("every share is known") if any(claims(snapshot)) else skipped("no device is allocated")
    )


@check(
    "claims.excused",
    "Each pod that holds a card for others without a charge is recognized by evidence that no tenant can forge.",
    "A pod that holds cards for others is recognized by its namespace: see --sharing.namespaces.",
)
def excused(snapshot: Snapshot, _: Machine) -> CheckResult:
    return passed(several(excused_texts(snapshot.cards), MOST_EXCUSED) or "no pod is excused")


@check(
    "sharing.*",
    "Each way to share GPUs that this node shows signs of yields claims, and nothing about them is in doubt.",
    "Make sure that podgpu gets what the system needs: mostly the kubelet's list and the pods' annotations.",
)
def systems(snapshot: Snapshot, _: Machine) -> dict[str, CheckResult]:
    return {line(status.system): _system(status) for status in snapshot.sharing}


@check(
    "sharing.unknown-ids",
    "Every device id that the kubelet allocated is understood.",
    "podgpu knows no system with such ids. Please report the resource and the id. Of two pods with one device,"
    " one has ended: nothing is booked by it until the kubelet forgets that pod.",
)
def unknown_ids(snapshot: Snapshot, _: Machine) -> CheckResult:
    return by_problems(snapshot, "unclaimed") or (
        passed("every device id is understood") if any(claims(snapshot)) else skipped("no device is allocated")
    )


@check(
    "sharing.cards",
    "It is known which card everything that was given to a container is on.",
    "The annotation of a sharing system's scheduler is missing or names other cards than this node has. The cards are"
    " known as soon as processes run there; to have an annotation written again, restart the pod.",
)
def unknown_cards(snapshot: Snapshot, _: Machine) -> CheckResult:
    return by_problems(snapshot, "unknown_card") or (
        passed("the cards of every container are known") if any(claims(snapshot)) else skipped("no device is allocated")
    )


@check(
    "holders.idle",
    "No pod holds a share of a GPU without using it for the time of --idle.after.",
    "Ask its owner, or scale it down. `podgpu idle` lists them all, with what that costs.",
)
def idle(snapshot: Snapshot, _: Machine) -> CheckResult:
    if found := by_problems(snapshot, "idle"):
        return found
    held = [tenant.holding for card in snapshot.cards for tenant in card.tenants if tenant.holding]
    if not held:
        return skipped("no pod holds a GPU")
    if unknown := sum(holding.state == UNKNOWN for holding in held):
        return skipped(f"not known of {count(unknown, 'holder')}")
    return passed("every pod that holds a GPU uses it, or has not held it for long")


def _system(status: SharingStatus) -> CheckResult:
    if status.missing:
        advice = f"Nothing, as long as no pod uses it. To book by it, podgpu needs {line(status.missing)}."
        return warned("there are signs of it, but no claim", advice)
    claimed = count(status.claims, "claim")
    if status.doubts:
        return warned("; ".join([claimed, *map(line, status.doubts)]), _DOUBTS)
    return passed(claimed)


@check("books.balance", "Containers and the rest add up to the GPU.", REPORT)
def balance(snapshot: Snapshot, _: Machine) -> CheckResult:
    booked = _booked(snapshot)
    if not booked:
        return NOT_YET if snapshot.cards else NO_GPU
    if snapshot.stored:
        return skipped("a store does not hold everything that was booked")
    return by_problems(snapshot, "books") or passed(f"exactly, on {count(len(booked), 'GPU')}")


@check(
    "books.unattributed",
    "At most a tenth of the memory, the busy time and the energy has no known owner.",
    "See the proc and pods checks. `podgpu snapshot` shows the processes.",
)
def unattributed(snapshot: Snapshot, _: Machine) -> CheckResult:
    booked = _booked(snapshot)
    if not booked:
        return NOT_YET if snapshot.cards else NO_GPU
    # Where processes cannot be listed, it is not known whose memory it is.
    listed = [(card, balance) for card, balance in booked if card.ability.sees_processes]
    parts = {
        "memory": _unknown_part(listed, lambda booked: booked.memory_bytes),
        "busy time": _unknown_part(booked, lambda booked: booked.busy_us),
        "energy": _unknown_part(booked, lambda booked: booked.energy_mj),
    }
    much = [f"{percent(part)} of the {what}" for what, part in parts.items() if part > MUCH]
    if not much:
        return passed(f"at most {percent(max(parts.values()))} has no known owner")
    reasons = Counter(holder.reason for holder in holders(snapshot) if holder.reason and holder.container is None)
    listing = ", ".join(f"{number} {line(reason)}" for reason, number in reasons.most_common(3))
    advice = next_step(Fault(reason="no_host_pid")) if "no_host_pid" in reasons else ""
    found = f"no known owner: {', '.join(much)}" + (f"; processes: {listing}" if listing else "")
    return warned(found, advice)


@check(
    "books.charges",
    "The GPU memory that the kernel charges to each container is that of its processes.",
    "`podgpu why POD` shows both figures.",
)
def charges(snapshot: Snapshot, _: Machine) -> CheckResult:
    if found := by_problems(snapshot, "memory_unexplained", "memory_elsewhere"):
        return found
    kept = [card.charges for card in snapshot.cards if card.charges is not None]
    if not kept:
        return skipped("the kernel charges no GPU memory: that needs driver 615, Linux 6.14, and the host's cgroups")
    containers = {charge.container for found in kept for charge in found}
    if not containers:
        return skipped("no container's cgroup has the dmem controller, or none has GPU memory")
    return passed(f"for {count(len(containers), 'container')}")


@check(
    "books.sampling",
    "The busy time of shared GPUs is divided by more than the driver's samples.",
    "--switches=check compares the samples with the driver's log of context switches, and corrects them.",
)
def sampling(snapshot: Snapshot, _: Machine) -> CheckResult:
    shared = [card for card in snapshot.cards if len([tenant for tenant in card.tenants if tenant.running]) > 1]
    tenants = [(full_name(tenant.container), tenant.booking) for card in shared for tenant in card.tenants]
    if not tenants:
        return passed("no GPU is shared by several containers")
    if notes := [card.use.note for card in shared if card.use and card.use.note]:
        divided = named([card for card in shared if card.use and card.use.note])
        return passed(f"by samples alone: {divided}. {notes[0]}")
    if missed := [name for name, booking in tenants if booking.sampling and booking.sampling.error_ratio]:
        return passed(f"by the log of context switches; samples do not represent {several(missed)}")
    if any(booking.sampling for _, booking in tenants):
        return passed("the log of context switches agrees with the samples")
    return passed("by what each tenant is alone on, or by claims")


def _booked(snapshot: Snapshot) -> list[tuple[Card, Balance]]:
    return [(card, card.balance) for card in snapshot.cards if card.balance]


def _unknown_part(booked: list[tuple[Card, Balance]], amount: Callable[[Balance | Rest], int | None]) -> float:
    """Return how much of a quantity is booked as unknown: 0 where nothing is booked."""
    total = sum(amount(balance) or 0 for _, balance in booked)
    unknown = (rest for card, _ in booked for rest in card.rest if rest.reason == "unknown")
    return sum(amount(rest) or 0 for rest in unknown) / total if total else 0.0
