"""Whether the books balance, and how much of them is nobody's."""

from collections import Counter

from podgpu.doctor.driver import NO_GPU, count, is_by_pages
from podgpu.doctor.verdict import Machine, Verdict, failed, passed, skipped, warned
from podgpu.model import Balance, Booking, Fault, Remainder, Snapshot
from podgpu.views.advice import next_step
from podgpu.views.glance import percent
from podgpu.views.text import line

MUCH = 0.1  # of a card's memory, busy time or energy


def balance(snapshot: Snapshot, _: Machine) -> Verdict:
    if not snapshot.balances:
        return skipped("nothing is booked yet") if snapshot.devices else NO_GPU
    wrong = [one.gpu for one in snapshot.balances if not _adds_up(snapshot, one)]
    if wrong:
        return failed(f"they do not on {', '.join(map(line, wrong))}")
    return passed(f"exactly, on {count(len(snapshot.balances), 'GPU')}")


def unattributed(snapshot: Snapshot, _: Machine) -> Verdict:
    if not snapshot.balances:
        return skipped("nothing is booked yet") if snapshot.devices else NO_GPU
    # Of processes and their memory a page tells nothing.
    parts = {
        "memory": 0.0 if is_by_pages(snapshot) else _part(snapshot, "memory_bytes"),
        "busy time": _part(snapshot, "busy_us"),
        "energy": _part(snapshot, "energy_mj"),
    }
    much = [f"{percent(part)} of the {what}" for what, part in parts.items() if part > MUCH]
    if not much:
        return passed(f"{percent(max(parts.values()))} at most is nobody's")
    reasons = Counter(one.reason for one in snapshot.holders if one.reason and one.container is None)
    told = ", ".join(f"{number} {line(reason)}" for reason, number in reasons.most_common(3))
    advice = next_step(Fault(reason="no_host_pid")) if "no_host_pid" in reasons else ""
    return warned(f"nobody's: {', '.join(much)}" + (f"; processes: {told}" if told else ""), advice)


def _adds_up(snapshot: Snapshot, balance: Balance) -> bool:
    rows: list[Booking | Remainder] = [one for one in snapshot.bookings if one.gpu == balance.gpu]
    rows += [one for one in snapshot.remainders if one.gpu == balance.gpu]
    memory = sum(one.memory_bytes or 0 for one in rows)
    return (
        balance.memory_bytes in (None, memory)
        and sum(one.busy_us for one in rows) == balance.busy_us
        and sum(one.energy_mj for one in rows) == balance.energy_mj
    )


def _part(snapshot: Snapshot, quantity: str) -> float:
    """Say how much of a quantity is booked as unknown. Where nothing is booked, nothing is."""
    unknown = sum(getattr(one, quantity) or 0 for one in snapshot.remainders if one.reason == "unknown")
    total = sum(getattr(one, quantity) or 0 for one in snapshot.balances)
    return unknown / total if total else 0.0
