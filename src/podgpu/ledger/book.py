"""One device's books for one cycle: every byte, busy microsecond and millijoule to a party, exactly.

memory   what its processes were measured to hold; the rest is overhead
busy     by the weights of `activity`; the rest is unknown
energy   the idle part by reserved share, the active part by the same weights as busy time
"""

from collections.abc import Iterable, Mapping

from podgpu.ledger.account import Account, Entry, Interval, Party, Sheet
from podgpu.ledger.activity import Weights, busy_us, instance_parts, weigh
from podgpu.ledger.reserved import PARTS, Reserved, reserved
from podgpu.ledger.split import split, within
from podgpu.ledger.usage import Usage, usages
from podgpu.model import Claim, Device, Holder


def book(
    device: Device,
    interval: Interval,
    claims: Iterable[Claim],
    holders: Mapping[int, Holder],
    *,
    visible: bool = True,
) -> Sheet:
    parts = {instance.mig.uuid: instance_parts(device, instance) for instance in device.instances}
    rights = reserved(device.gpu.uuid, claims, parts)
    used = usages(device, holders, interval.elapsed_us)
    entries: dict[Party, Entry] = {party: Entry() for party in (*used, *rights.shares)}
    _describe(device, entries, used, rights, interval)
    weights = weigh(device, used, rights, interval, visible=visible)
    for party, method in weights.methods.items():
        entries[party].method = method
    busy = busy_us(device, interval) or 0
    for party, part in _divided(busy, weights).items():
        _entry(entries, party).busy_us = part
    return Sheet(
        gpu=device.gpu.uuid,
        memory_bytes=_book_memory(device, used, entries),
        busy_us=busy,
        energy_mj=_book_energy(interval, busy, weights, rights, entries),
        entries=entries,
    )


def _describe(
    device: Device,
    entries: dict[Party, Entry],
    used: Mapping[Party, Usage],
    rights: Reserved,
    interval: Interval,
) -> None:
    for party, entry in entries.items():
        usage = used.get(party)
        if usage:
            entry.processes = usage.processes
            entry.sm_ratio = None if usage.sm_ratio is None else min(usage.sm_ratio, 1.0)
        if isinstance(party, Account):
            _describe_account(device, party, entry, used, rights, interval)


def _describe_account(
    device: Device,
    account: Account,
    entry: Entry,
    used: Mapping[Party, Usage],
    rights: Reserved,
    interval: Interval,
) -> None:
    entry.memory_limit_bytes = rights.memory_limits.get(account)
    if account in rights.shares:
        entry.share = rights.shares[account] / PARTS
        entry.allocated_us = rights.shares[account] * interval.elapsed_us // PARTS
    if account.mig:
        alone = all(party == account for party, usage in used.items() if account.mig in usage.migs)
        entry.sm_ratio = _instance_ratio(device, account.mig) if alone else None


def _instance_ratio(device: Device, uuid: str) -> float | None:
    """On MIG the profiling counters are all there is, and they are the instance's."""
    for instance in device.instances:
        if instance.mig.uuid == uuid:
            return next((one.value for one in instance.readings if one.metric == "sm_active_ratio"), None)
    return None


def _book_memory(device: Device, used: Mapping[Party, Usage], entries: dict[Party, Entry]) -> int | None:
    """What cannot be measured is absent, and its bytes are nobody's known."""
    total = next((int(one.value) for one in device.readings if one.metric == "memory_used_bytes"), None)
    known = {party: one.memory_bytes for party, one in used.items() if one.memory_bytes is not None}
    fitted, left = (known, 0) if total is None else within(total, known)
    for party, part in fitted.items():
        if entries[party].processes:
            entries[party].memory_bytes = part
    if left:
        rest = _entry(entries, "overhead" if len(known) == len(used) else "unknown")
        rest.memory_bytes = (rest.memory_bytes or 0) + left
    return total


def _book_energy(
    interval: Interval, busy: int, weights: Weights, rights: Reserved, entries: dict[Party, Entry]
) -> int:
    energy = interval.energy_mj or 0
    works = busy > 0 or sum(weights.of.values()) > 0 or interval.is_gap
    idle = min(energy, interval.idle_mj) if works else energy
    shares: dict[Party, int] = dict(rights.shares.items())
    shares["idle"] = max(0, PARTS - sum(rights.shares.values()))
    for party, part in split(idle, shares).items():
        _entry(entries, party).energy_mj += part
    for party, part in _divided(energy - idle, weights).items():
        _entry(entries, party).energy_mj += part
    return energy


def _divided(total: int, weights: Weights) -> dict[Party, int]:
    """Divide by the weights; what they leave is unknown."""
    of = dict(weights.of)
    left = weights.whole - sum(of.values())
    if left > 0 or not any(of.values()):
        of["unknown"] = of.get("unknown", 0) + max(left, 1)
    return split(total, of)


def _entry(entries: dict[Party, Entry], party: Party) -> Entry:
    return entries.setdefault(party, Entry())
