"""The health of the cards, and their MIG instances."""

from podgpu.catalog import xids
from podgpu.doctor.look import NO_GPU, PROFILED, SECOND_HAND, answering, first_hand, named, number
from podgpu.doctor.verdict import Machine, Verdict, failed, passed, several, skipped, warned
from podgpu.insight.advice import ACTIONS
from podgpu.model import Card, Snapshot
from podgpu.numbers import count, integer

NO_MIG = skipped("no GPU is in MIG mode")


def recovery(snapshot: Snapshot, _: Machine) -> Verdict:
    asked = {card.gpu.index: number(card.readings, "recovery_action") for card in answering(snapshot)}
    known = {index: action for index, action in asked.items() if action is not None}
    if not known:
        return skipped("the driver does not report it") if asked else NO_GPU
    wanted = [f"GPU {index}: {_action(action)}" for index, action in known.items() if action]
    return (
        failed(f"the driver asks for: {several(wanted)}") if wanted else passed("the driver asks for nothing")
    )


def memory(snapshot: Snapshot, _: Machine) -> Verdict:
    cards = answering(snapshot)
    if broken := _with(cards, "row_remap_failed"):
        return failed(
            f"{named(broken)}: a bad row of memory could not be replaced",
            "Drain the node, run NVIDIA's field diagnostics, and have the card replaced.",
        )
    pending = _with(cards, "row_remap_pending", "retired_pages_pending")
    if pending:
        return warned(f"{named(pending)}: bad memory will be replaced at the next reset")
    return passed("no bad memory is waiting to be replaced") if cards else NO_GPU


def xid(snapshot: Snapshot, _: Machine) -> Verdict:
    codes = {card.gpu.index: number(card.readings, "xid_last_code") for card in answering(snapshot)}
    raised = [f"GPU {index}: last {xids.named(code)}" for index, code in codes.items() if code is not None]
    if raised:
        return warned(several(raised))
    return passed("none since podgpu began to listen") if codes else NO_GPU


def link(snapshot: Snapshot, _: Machine) -> Verdict:
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


def instances(snapshot: Snapshot, _: Machine) -> Verdict:
    cards = [card for card in answering(snapshot) if card.gpu.mig_enabled]
    empty = [card for card in cards if not card.instances]
    if empty:
        return warned(f"{named(empty)}: MIG is on, but there is no instance to be seen")
    found = sum(len(card.instances) for card in cards)
    return passed(f"{count(found, 'instance')} on {count(len(cards), 'GPU')}") if cards else NO_MIG


def instance_profiling(snapshot: Snapshot, _: Machine) -> Verdict:
    if answering(snapshot) and not first_hand(snapshot):
        return SECOND_HAND
    cards = [card for card in first_hand(snapshot) if card.instances]
    if not cards:
        return NO_MIG
    mute = [card for card in cards if any(number(one.readings, PROFILED) is None for one in card.instances)]
    if mute:
        return warned(f"{named(mute)}: instances without profiling values")
    return passed(f"GPM answers on {count(sum(len(card.instances) for card in cards), 'instance')}")


def _action(code: float) -> str:
    return ACTIONS.get(int(code), f"action {int(code)}")


def _with(cards: list[Card], *metrics: str) -> list[Card]:
    return [one for one in cards if any(number(one.readings, metric) for metric in metrics)]
