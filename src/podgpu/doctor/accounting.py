"""Whether the books balance, and how much in them has no known owner."""

from collections import Counter
from collections.abc import Iterable

from podgpu.doctor.check import NO_GPU, CheckResult, Machine, holders, passed, skipped, warned, wrong
from podgpu.insight.advice import next_step
from podgpu.model import Balance, Card, Fault, Snapshot
from podgpu.numbers import count, percent
from podgpu.views.tenants import full_name
from podgpu.views.text import line

MUCH = 0.1  # of the cards' memory, busy time or energy
NOT_YET = skipped("nothing is booked yet")


def balance(snapshot: Snapshot, _: Machine) -> CheckResult:
    booked = _booked(snapshot)
    if not booked:
        return NOT_YET if snapshot.cards else NO_GPU
    if snapshot.stored:
        return skipped("a store does not hold everything that was booked")
    return wrong(snapshot, "books") or passed(f"exactly, on {count(len(booked), 'GPU')}")


def unattributed(snapshot: Snapshot, _: Machine) -> CheckResult:
    booked = _booked(snapshot)
    if not booked:
        return NOT_YET if snapshot.cards else NO_GPU
    # Where processes cannot be listed, nothing is known about anybody's memory.
    listed = [(card, balance) for card, balance in booked if card.ability.sees_processes]
    parts = {
        "memory": _part(listed, "memory_bytes"),
        "busy time": _part(booked, "busy_us"),
        "energy": _part(booked, "energy_mj"),
    }
    much = [f"{percent(part)} of the {what}" for what, part in parts.items() if part > MUCH]
    if not much:
        return passed(f"at most {percent(max(parts.values()))} has no known owner")
    reasons = Counter(one.reason for one in holders(snapshot) if one.reason and one.container is None)
    listing = ", ".join(f"{number} {line(reason)}" for reason, number in reasons.most_common(3))
    advice = next_step(Fault(reason="no_host_pid")) if "no_host_pid" in reasons else ""
    found = f"no known owner: {', '.join(much)}" + (f"; processes: {listing}" if listing else "")
    return warned(found, advice)


def sampling(snapshot: Snapshot, _: Machine) -> CheckResult:
    """Whether whoever shares a card is named by samples as often as it is there, as far as anybody knows."""
    shared = [card for card in snapshot.cards if len([one for one in card.tenants if one.running]) > 1]
    tenants = [(full_name(one.container), one.booking) for card in shared for one in card.tenants]
    if not tenants:
        return passed("no GPU is shared by several containers")
    if evading := wrong(snapshot, "evades_sampling"):
        return evading
    doubtful = [line(name) for name, one in tenants if one.band and one.band.undersampled]
    if doubtful:
        return warned(f"named far less often than their processor time suggests: {', '.join(doubtful)}")
    if any(one.sampling for _, one in tenants):
        return passed("the log of context switches agrees with the samples")
    return passed("nothing suggests that anybody evades them")


def _booked(snapshot: Snapshot) -> list[tuple[Card, Balance]]:
    return [(card, card.balance) for card in snapshot.cards if card.balance]


def _part(booked: Iterable[tuple[Card, Balance]], quantity: str) -> float:
    """Return how much of a quantity is booked as unknown. Where nothing is booked, nothing is."""
    unknown = total = 0
    for card, balance in booked:
        total += getattr(balance, quantity) or 0
        unknown += sum(getattr(one, quantity) or 0 for one in card.rest if one.reason == "unknown")
    return unknown / total if total else 0.0
