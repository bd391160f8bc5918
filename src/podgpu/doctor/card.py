"""The health of the cards, and their MIG instances."""

from podgpu.doctor.driver import NO_GPU, PROFILED, answering, count, is_by_pages, named, number
from podgpu.doctor.verdict import Machine, Verdict, failed, passed, several, skipped, warned
from podgpu.model import Device, Snapshot

# What the driver may ask for. Zero is nothing.
ACTIONS = {
    1: "reset the GPU",
    2: "reboot the node",
    3: "drain peer-to-peer traffic",
    4: "drain and reset",
    5: "recover the IMEX domain",
    6: "reset the bus",
    7: "reboot all nodes",
}
NO_MIG = skipped("no GPU is in MIG mode")


def recovery(snapshot: Snapshot, _: Machine) -> Verdict:
    asked = {device.gpu.index: number(device.readings, "recovery_action") for device in answering(snapshot)}
    known = {index: action for index, action in asked.items() if action is not None}
    if not known:
        return skipped("the driver does not tell") if asked else NO_GPU
    wanted = [f"GPU {index}: {_action(action)}" for index, action in known.items() if action]
    return failed(f"the driver asks for: {several(wanted)}") if wanted else passed("the driver asks for none")


def memory(snapshot: Snapshot, _: Machine) -> Verdict:
    cards = answering(snapshot)
    if broken := _with(cards, "row_remap_failed"):
        return failed(
            f"{named(broken)}: a bad row of memory could not be replaced",
            "Drain the node, run NVIDIA's field diagnostics, and have the card replaced.",
        )
    pending = _with(cards, "row_remap_pending", "retired_pages_pending")
    if pending:
        return warned(f"{named(pending)}: bad memory is replaced at the next reset")
    return passed("no bad memory waits to be replaced") if cards else NO_GPU


def xid(snapshot: Snapshot, _: Machine) -> Verdict:
    codes = {device.gpu.index: number(device.readings, "xid_last_code") for device in answering(snapshot)}
    raised = [f"GPU {index}: last XID {code:.0f}" for index, code in codes.items() if code is not None]
    if raised:
        return warned(several(raised))
    return passed("none since podgpu began to listen") if codes else NO_GPU


def link(snapshot: Snapshot, _: Machine) -> Verdict:
    widths = {
        device.gpu.index: (now, most)
        for device in answering(snapshot)
        if (now := number(device.readings, "pcie_link_width")) is not None
        and (most := number(device.readings, "pcie_link_width_max")) is not None
    }
    narrow = [
        f"GPU {index}: x{now:.0f} of x{most:.0f}" for index, (now, most) in widths.items() if now < most
    ]
    if narrow:
        return warned(several(narrow))
    return passed("every link has its full width") if widths else skipped("no GPU tells its link")


def instances(snapshot: Snapshot, _: Machine) -> Verdict:
    cards = [device for device in answering(snapshot) if device.gpu.mig_enabled]
    empty = [device for device in cards if not device.instances]
    if empty:
        return warned(f"{named(empty)}: MIG is on, and no instance is seen")
    found = sum(len(device.instances) for device in cards)
    return passed(f"{count(found, 'instance')} on {count(len(cards), 'GPU')}") if cards else NO_MIG


def instance_profiling(snapshot: Snapshot, _: Machine) -> Verdict:
    if is_by_pages(snapshot):
        return skipped("the numbers come from elsewhere")
    found = [(device, one) for device in answering(snapshot) for one in device.instances]
    if not found:
        return NO_MIG
    mute = {device.gpu.uuid: device for device, one in found if number(one.readings, PROFILED) is None}
    if mute:
        return warned(f"{named(list(mute.values()))}: instances without profiling values")
    return passed(f"GPM answers on {count(len(found), 'instance')}")


def _action(code: float) -> str:
    return ACTIONS.get(int(code), f"action {code:.0f}")


def _with(devices: list[Device], *metrics: str) -> list[Device]:
    return [one for one in devices if any(number(one.readings, metric) for metric in metrics)]
