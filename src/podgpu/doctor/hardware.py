"""The health of the cards, and their MIG instances."""

from podgpu.doctor.check import (
    NO_GPU,
    PROFILED,
    SECOND_HAND,
    CheckResult,
    Machine,
    answering,
    by_problems,
    check,
    first_hand,
    named,
    passed,
    several,
    skipped,
    warned,
)
from podgpu.insight.tenants import reading
from podgpu.model import Snapshot
from podgpu.numbers import count, integer

NO_MIG = skipped("no GPU is in MIG mode")


@check(
    "gpu.recovery",
    "The driver does not ask for a reset, a reboot or the like.",
    "Drain the node, then do what the driver asks for.",
)
def recovery(snapshot: Snapshot, _: Machine) -> CheckResult:
    if found := by_problems(snapshot, "recovery"):
        return found
    cards = answering(snapshot)
    if any(reading(card.readings, "recovery_action") is not None for card in cards):
        return passed("the driver asks for nothing")
    return skipped("the driver does not report it") if cards else NO_GPU


@check(
    "gpu.memory",
    "No bad memory is waiting to be replaced by spare memory, and no replacement failed.",
    "Drain the node when you can, then run nvidia-smi --gpu-reset or reboot.",
)
def memory(snapshot: Snapshot, _: Machine) -> CheckResult:
    return _none_of(snapshot, "no bad memory is waiting to be replaced", "memory_failed", "memory_pending")


@check(
    "gpu.xid",
    "No XID error that the driver raised asks for more than a restart of the pod.",
    "Do what xids.md says of the code, and search the kernel log for it.",
)
def xid(snapshot: Snapshot, _: Machine) -> CheckResult:
    return _none_of(snapshot, "none since podgpu began to listen", "xid")


@check(
    "gpu.ecc",
    "No card has had memory errors that could not be corrected.",
    "If the count grows, drain the node and run NVIDIA's field diagnostics.",
)
def ecc(snapshot: Snapshot, _: Machine) -> CheckResult:
    return _none_of(snapshot, "no memory error that could not be corrected", "ecc")


@check(
    "gpu.throttled",
    "Neither heat nor power slows a card down.",
    "Check the cooling and the power supply of the node.",
)
def throttled(snapshot: Snapshot, _: Machine) -> CheckResult:
    return _none_of(snapshot, "neither heat nor power slows a GPU down", "throttled")


@check(
    "gpu.switching",
    "No card spends much of its time on context switches.",
    "Let the tenants run side by side, with MPS or MIG, or give each of them more work at a time.",
)
def switching(snapshot: Snapshot, _: Machine) -> CheckResult:
    if found := by_problems(snapshot, "switching"):
        return found
    if any(card.balance and card.balance.switching_ratio is not None for card in snapshot.cards):
        return passed("context switches take little of the GPUs' time")
    return skipped("nothing measures it: see proc.switches")


@check(
    "gpu.link",
    "Each PCIe link is as wide as the card and the slot allow.",
    "Reseat the card, or check the riser and the slot.",
)
def link(snapshot: Snapshot, _: Machine) -> CheckResult:
    links = [
        (card.gpu.index, now, most)
        for card in answering(snapshot)
        if (now := reading(card.readings, "pcie_link_width")) is not None
        and (most := reading(card.readings, "pcie_link_width_max")) is not None
    ]
    narrow = [f"GPU {index}: x{integer(now)} of x{integer(most)}" for index, now, most in links if now < most]
    if narrow:
        return warned(several(narrow))
    return passed("every link has its full width") if links else skipped("no GPU reports its link")


@check(
    "mig.instances",
    "A GPU in MIG mode has instances, and podgpu can see them.",
    "Create some. If there are some, set NVIDIA_MIG_MONITOR_DEVICES=all on the agent's container.",
)
def instances(snapshot: Snapshot, _: Machine) -> CheckResult:
    cards = [card for card in answering(snapshot) if card.gpu.mig_enabled]
    if empty := [card for card in cards if not card.instances]:
        return warned(f"{named(empty)}: MIG is on, but there is no instance to be seen")
    found = sum(len(card.instances) for card in cards)
    return passed(f"{count(found, 'instance')} on {count(len(cards), 'GPU')}") if cards else NO_MIG


@check(
    "mig.profiling",
    "MIG instances provide profiling values; nothing else shows how busy they are.",
    "GPM on instances needs Hopper or newer. If the card is, update the driver.",
)
def instance_profiling(snapshot: Snapshot, _: Machine) -> CheckResult:
    if answering(snapshot) and not first_hand(snapshot):
        return SECOND_HAND
    cards = [card for card in first_hand(snapshot) if card.instances]
    if not cards:
        return NO_MIG
    mute = [card for card in cards if any(reading(instance.readings, PROFILED) is None for instance in card.instances)]
    if mute:
        return warned(f"{named(mute)}: instances without profiling values")
    return passed(f"GPM answers on {count(sum(len(card.instances) for card in cards), 'instance')}")


def _none_of(snapshot: Snapshot, words: str, *problems: str) -> CheckResult:
    return by_problems(snapshot, *problems) or (passed(words) if answering(snapshot) else NO_GPU)
