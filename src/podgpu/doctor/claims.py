"""Whether it is understood who was given a GPU: claims, and the systems that share cards."""

from podgpu.catalog.agent_parts import PODRESOURCES, RESOURCE_CLAIMS
from podgpu.doctor.check import (
    CheckResult,
    Machine,
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


def rights(snapshot: Snapshot, _: Machine) -> CheckResult:
    state = state_of(RESOURCE_CLAIMS, snapshot)
    if state is None:
        return skipped("no pod has a resource claim")
    return passed("resource claims can be read") if state.up else down(state)


def missing(snapshot: Snapshot, _: Machine) -> CheckResult:
    if not works(PODRESOURCES, snapshot):
        return skipped("needs kubelet.socket")
    return wrong(snapshot, "not_given") or passed("everybody on a GPU was given it")


def excused(snapshot: Snapshot, _: Machine) -> CheckResult:
    """Nothing that is listed here pays, so everybody may see why."""
    found = excused_texts(snapshot.cards)
    return passed(several(found, MOST_EXCUSED)) if found else passed("nobody is excused")


def systems(snapshot: Snapshot, _: Machine) -> dict[str, CheckResult]:
    return {line(one.system): _system(one) for one in snapshot.sharing}


def unknown_ids(snapshot: Snapshot, _: Machine) -> CheckResult:
    return wrong(snapshot, "unclaimed") or (
        passed("every device id is understood")
        if any(claims(snapshot))
        else skipped("no device was given out")
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
