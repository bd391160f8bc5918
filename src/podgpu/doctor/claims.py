"""Whether it is understood who was given a GPU: claims, and the systems that share cards."""

from podgpu.catalog.agent_parts import PODRESOURCES, RESOURCE_CLAIMS
from podgpu.doctor.check import (
    CheckResult,
    Machine,
    check,
    claims,
    down,
    passed,
    several,
    skipped,
    state_of,
    warned,
    works,
    wrong,
)
from podgpu.insight.tenants import UNKNOWN
from podgpu.model import SharingStatus, Snapshot
from podgpu.numbers import count
from podgpu.views.tenants import excused_texts
from podgpu.views.text import line

MOST_EXCUSED = 16
_DOUBTS = "docs/sharing.md, What cannot be known, lists each such case, what is claimed meanwhile and what settles it."


@check(
    "claims.rights",
    "The API server lets podgpu read resource claims, if pods have any.",
    "Allow the agent's service account to get resourceclaims and to list resourceslices.",
)
def rights(snapshot: Snapshot, _: Machine) -> CheckResult:
    state = state_of(RESOURCE_CLAIMS, snapshot)
    if state is None:
        return skipped("no pod has a resource claim")
    return passed("resource claims can be read") if state.up else down(state)


@check(
    "claims.missing",
    "No pod uses a GPU that it was not given.",
    "Look for a privileged container or NVIDIA_VISIBLE_DEVICES=all. `podgpu why POD` shows what is known.",
)
def missing(snapshot: Snapshot, _: Machine) -> CheckResult:
    if not works(PODRESOURCES, snapshot):
        return skipped("needs kubelet.socket")
    return wrong(snapshot, "not_given") or passed("everybody on a GPU was given it")


@check(
    "claims.excused",
    "Whoever has a card for others, and pays for none of it, is known by something that no tenant can write.",
    "A pod that holds cards for others is one by its namespace: see --sharing.namespaces.",
)
def excused(snapshot: Snapshot, _: Machine) -> CheckResult:
    """Nothing that is listed here pays, so everybody may see why."""
    found = excused_texts(snapshot.cards)
    return passed(several(found, MOST_EXCUSED)) if found else passed("nobody is excused")


@check(
    "sharing.*",
    "Each way to share GPUs that this node shows signs of yields claims, and nothing about them is in doubt.",
    "Make sure that podgpu gets what the system needs: mostly the kubelet's list and the pods' annotations.",
)
def systems(snapshot: Snapshot, _: Machine) -> dict[str, CheckResult]:
    return {line(status.system): _system(status) for status in snapshot.sharing}


@check(
    "sharing.unknown-ids",
    "Every device id that the kubelet gave out is understood.",
    "podgpu knows no system with such ids. Please report the resource and the id. Of two pods with one device,"
    " one has ended: nothing is booked by it until the kubelet forgets that pod.",
)
def unknown_ids(snapshot: Snapshot, _: Machine) -> CheckResult:
    return wrong(snapshot, "unclaimed") or (
        passed("every device id is understood")
        if any(claims(snapshot))
        else skipped("no device was given out")
    )


@check(
    "holders.idle",
    "Nobody holds a share of a GPU without using it for the time of --idle.after.",
    "Ask its owner, or scale it down. `podgpu idle` lists them all, with what that costs.",
)
def idle(snapshot: Snapshot, _: Machine) -> CheckResult:
    if found := wrong(snapshot, "idle"):
        return found
    held = [tenant.holding for card in snapshot.cards for tenant in card.tenants if tenant.holding]
    if not held:
        return skipped("nobody holds a GPU")
    unknown = sum(holding.state == UNKNOWN for holding in held)
    if unknown:
        return skipped(f"not known of {count(unknown, 'holder')}")
    return passed("whoever holds a GPU uses it, or has not held it for long")


def _system(status: SharingStatus) -> CheckResult:
    if status.missing:
        advice = f"Nothing, as long as no pod uses it. To book by it, podgpu needs {line(status.missing)}."
        return warned("there are signs of it, but no claim", advice)
    claimed = count(status.claims, "claim")
    if status.doubts:
        return warned("; ".join([claimed, *map(line, status.doubts)]), _DOUBTS)
    return passed(claimed)


CHECKS = (
    rights,
    missing,
    excused,
    systems,
    unknown_ids,
    idle,
)
