"""Whether who was given a GPU is understood: claims, and the systems that share cards."""

from podgpu.doctor.kubernetes import KUBELET
from podgpu.doctor.verdict import Machine, Verdict, down, failed, part_of, passed, several, skipped, warned
from podgpu.model import Snapshot
from podgpu.views.tenancy import full_name
from podgpu.views.text import line

DYNAMICS = "resource-claims"


def rights(snapshot: Snapshot, _: Machine) -> Verdict:
    part = part_of(snapshot, DYNAMICS)
    if part is None:
        return skipped("no pod has a resource claim")
    if part.up:
        return passed("resource claims can be read")
    verdict = down(part)
    if part.fault and part.fault.reason == "forbidden":  # whose usual advice speaks of pods
        return failed(verdict.detail)
    return verdict


def missing(snapshot: Snapshot, _: Machine) -> Verdict:
    part = part_of(snapshot, KUBELET)
    if part is None or not part.up:
        return skipped("needs kubelet.socket")
    cards = {device.gpu.uuid: device.gpu.index for device in snapshot.devices}
    users = [
        f"{full_name(one.container)} on GPU {cards[one.gpu]}"
        for one in snapshot.bookings
        if one.processes and one.allocated_ratio is None and one.container.namespace and one.gpu in cards
    ]
    if users:
        return warned(f"use a GPU without a claim: {several(users)}")
    return passed("whoever uses a GPU was given it")


def systems(snapshot: Snapshot, _: Machine) -> dict[str, Verdict]:
    return {line(one.system): _system(one.claims, line(one.missing)) for one in snapshot.sharing}


def unknown_ids(snapshot: Snapshot, _: Machine) -> Verdict:
    found = [f"{full_name(one)}: {line(one.device_id)} of {line(one.resource)}" for one in snapshot.unclaimed]
    if found:
        return warned(several(found))
    return passed("every device id is understood") if snapshot.claims else skipped("no device is given out")


def _system(claims: int, needs: str) -> Verdict:
    if not needs:
        return passed(f"{claims} claim" + "s" * (claims != 1))
    advice = f"Nothing while no pod uses it. To book by it, podgpu needs {needs}."
    return warned("there are signs of it, and no claim", advice)
