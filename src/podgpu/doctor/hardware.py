"""The health of the cards, and their MIG instances."""

from podgpu.doctor.check import (
    NO_GPU,
    PROFILED,
    SECOND_HAND,
    CheckResult,
    Machine,
    answering,
    first_hand,
    named,
    number,
    passed,
    several,
    skipped,
    warned,
    wrong,
)
from podgpu.model import Snapshot
from podgpu.numbers import count, integer

NO_MIG = skipped("no GPU is in MIG mode")


def recovery(snapshot: Snapshot, _: Machine) -> CheckResult:
    if found := wrong(snapshot, "recovery"):
        return found
    cards = answering(snapshot)
    if any(number(card.readings, "recovery_action") is not None for card in cards):
        return passed("the driver asks for nothing")
    return skipped("the driver does not report it") if cards else NO_GPU


def memory(snapshot: Snapshot, _: Machine) -> CheckResult:
    return wrong(snapshot, "memory_failed", "memory_pending") or _if_read(
        snapshot, "no bad memory is waiting to be replaced"
    )


def xid(snapshot: Snapshot, _: Machine) -> CheckResult:
    return wrong(snapshot, "xid") or _if_read(snapshot, "none since podgpu began to listen")


def ecc(snapshot: Snapshot, _: Machine) -> CheckResult:
    return wrong(snapshot, "ecc") or _if_read(snapshot, "no memory error that could not be corrected")


def throttled(snapshot: Snapshot, _: Machine) -> CheckResult:
    return wrong(snapshot, "throttled") or _if_read(snapshot, "neither heat nor power slows a GPU down")


def switching(snapshot: Snapshot, _: Machine) -> CheckResult:
    if found := wrong(snapshot, "switching"):
        return found
    if any(card.balance and card.balance.switching_ratio is not None for card in snapshot.cards):
        return passed("context switches take little of the GPUs' time")
    return skipped("nothing measures it: see proc.switches")


def link(snapshot: Snapshot, _: Machine) -> CheckResult:
    widths = {
        card.gpu.index: (now, most)
        for card in answering(snapshot)
        if (now := number(card.readings, "pcie_link_width")) is not None
        and (most := number(card.readings, "pcie_link_width_max")) is not None
    }
    narrow = [
        f"GPU {index}: x{integer(now)} of x{integer(most)}"
        for index, (now, most) in widths.items()
        if now < most
    ]
    if narrow:
        return warned(several(narrow))
    return passed("every link has its full width") if widths else skipped("no GPU reports its link")


def instances(snapshot: Snapshot, _: Machine) -> CheckResult:
    cards = [card for card in answering(snapshot) if card.gpu.mig_enabled]
    empty = [card for card in cards if not card.instances]
    if empty:
        return warned(f"{named(empty)}: MIG is on, but there is no instance to be seen")
    found = sum(len(card.instances) for card in cards)
    return passed(f"{count(found, 'instance')} on {count(len(cards), 'GPU')}") if cards else NO_MIG


def instance_profiling(snapshot: Snapshot, _: Machine) -> CheckResult:
    if answering(snapshot) and not first_hand(snapshot):
        return SECOND_HAND
    cards = [card for card in first_hand(snapshot) if card.instances]
    if not cards:
        return NO_MIG
    mute = [card for card in cards if any(number(one.readings, PROFILED) is None for one in card.instances)]
    if mute:
        return warned(f"{named(mute)}: instances without profiling values")
    return passed(f"GPM answers on {count(sum(len(card.instances) for card in cards), 'instance')}")


def _if_read(snapshot: Snapshot, words: str) -> CheckResult:
    return passed(words) if answering(snapshot) else NO_GPU
