"""Whether the books balance, and how much in them has no known owner."""

from collections import Counter
from collections.abc import Callable

from podgpu.doctor.check import (
    NO_GPU,
    REPORT,
    CheckResult,
    Machine,
    check,
    holders,
    passed,
    skipped,
    warned,
    wrong,
)
from podgpu.insight.advice import next_step
from podgpu.model import Balance, Card, Fault, Rest, Snapshot
from podgpu.numbers import count, percent
from podgpu.views.tenants import full_name
from podgpu.views.text import line

MUCH = 0.1  # of the cards' memory, busy time or energy
NOT_YET = skipped("nothing is booked yet")


@check("books.balance", "Containers and the rest add up to the GPU.", REPORT)
def balance(snapshot: Snapshot, _: Machine) -> CheckResult:
    booked = _booked(snapshot)
    if not booked:
        return NOT_YET if snapshot.cards else NO_GPU
    if snapshot.stored:
        return skipped("a store does not hold everything that was booked")
    return wrong(snapshot, "books") or passed(f"exactly, on {count(len(booked), 'GPU')}")


@check(
    "books.unattributed",
    "At most a tenth of the memory, the busy time and the energy has no known owner.",
    "See the proc and pods checks. `podgpu snapshot` shows the processes.",
)
def unattributed(snapshot: Snapshot, _: Machine) -> CheckResult:
    booked = _booked(snapshot)
    if not booked:
        return NOT_YET if snapshot.cards else NO_GPU
    # Where processes cannot be listed, nothing is known about anybody's memory.
    listed = [(card, balance) for card, balance in booked if card.ability.sees_processes]
    parts = {
        "memory": _unknown_part(listed, lambda booked: booked.memory_bytes),
        "busy time": _unknown_part(booked, lambda booked: booked.busy_us),
        "energy": _unknown_part(booked, lambda booked: booked.energy_mj),
    }
    much = [f"{percent(part)} of the {what}" for what, part in parts.items() if part > MUCH]
    if not much:
        return passed(f"at most {percent(max(parts.values()))} has no known owner")
    reasons = Counter(
        holder.reason for holder in holders(snapshot) if holder.reason and holder.container is None
    )
    listing = ", ".join(f"{number} {line(reason)}" for reason, number in reasons.most_common(3))
    advice = next_step(Fault(reason="no_host_pid")) if "no_host_pid" in reasons else ""
    found = f"no known owner: {', '.join(much)}" + (f"; processes: {listing}" if listing else "")
    return warned(found, advice)


@check(
    "books.sampling",
    "The driver's samples name whoever shares a GPU as often as it is there: nobody rests around them.",
    "--switches=check would settle it: it compares the samples with the driver's log of context switches.",
)
def sampling(snapshot: Snapshot, _: Machine) -> CheckResult:
    """Whether whoever shares a card is named by samples as often as it is there, as far as anybody knows."""
    shared = [
        card for card in snapshot.cards if len([tenant for tenant in card.tenants if tenant.running]) > 1
    ]
    tenants = [(full_name(tenant.container), tenant.booking) for card in shared for tenant in card.tenants]
    if not tenants:
        return passed("no GPU is shared by several containers")
    if evading := wrong(snapshot, "evades_sampling"):
        return evading
    doubtful = [line(name) for name, booking in tenants if booking.band and booking.band.undersampled]
    if doubtful:
        return warned(f"named far less often than their processor time suggests: {', '.join(doubtful)}")
    if any(booking.sampling for _, booking in tenants):
        return passed("the log of context switches agrees with the samples")
    return passed("nothing suggests that anybody evades them")


def _booked(snapshot: Snapshot) -> list[tuple[Card, Balance]]:
    return [(card, card.balance) for card in snapshot.cards if card.balance]


def _unknown_part(
    booked: list[tuple[Card, Balance]], amount: Callable[[Balance | Rest], int | None]
) -> float:
    """Return how much of a quantity is booked as unknown: 0 where nothing is booked."""
    total = sum(amount(balance) or 0 for _, balance in booked)
    unknown = (rest for card, _ in booked for rest in card.rest if rest.reason == "unknown")
    return sum(amount(rest) or 0 for rest in unknown) / total if total else 0.0


CHECKS = (
    balance,
    unattributed,
    sampling,
)
