"""One device's books for one cycle: every byte, busy microsecond and millijoule to a party, exactly.

memory   what its processes were measured to hold; the rest is overhead
busy     by the weights of `activity`; the rest is unknown
energy   see `energy`
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from podgpu.ledger.activity import SERVERS, Clients, Weights, busy_us, on_instance, weigh
from podgpu.ledger.cycle import (
    NO_ENERGY,
    Comparison,
    CycleBooking,
    CycleBooks,
    EnergyParts,
    Interval,
    Party,
    TenantKey,
)
from podgpu.ledger.energy import settle
from podgpu.ledger.residency import Evidence, Residency, compared, residency, resident_us
from podgpu.ledger.shares import PARTS, Reserved, gpu_instances, reserved, within
from podgpu.ledger.usage import CLIENT, Usage, are_certain, is_watched, served, serving, usages
from podgpu.model import Claim, Device, Holder, Process, value_of

Bookings = defaultdict[Party, CycleBooking]


def book(
    device: Device,
    interval: Interval,
    claims: Iterable[Claim],
    holders: Mapping[int, Holder],
    servers: Collection[int] = (),
    evidence: Evidence | None = None,
    estimates: EnergyParts = NO_ENERGY,
) -> CycleBooks:
    """Book one cycle of a card. `claims` are those on this card, `servers` the PIDs of its MPS servers.

    `evidence` is what the driver's log of context switches says, if it is read. `estimates` are those of the energy
    that was drawn since the counter last moved.
    """
    claimed = reserved(claims, device)
    used = usages(device, holders, interval.elapsed_us, servers)
    serve = serving(device, holders, servers)
    bookings = _opened(device, interval, used, claimed, serve)
    certain = are_certain(holders[process.pid] for process in serve)
    clients = Clients(served(serve, interval.elapsed_us), certain=certain)
    log = evidence.log if evidence else None
    counts = evidence is not None and log is not None and certain and not device.instances
    parties = _parties(used, serve) if counts else {}
    proven = _resident(used, bookings, parties, evidence) if evidence and counts else None
    weights = weigh(device, used, claimed, interval, clients=clients, residency=proven)
    watched, known = is_watched(device, used), busy_us(device, interval)
    _book_busy(known or 0, weights, bookings)
    if known is not None:
        _set_ratios(bookings, weights, interval.elapsed_us, is_watched=watched)
    energy, estimates = settle(interval, known or 0, weights, claimed, estimates)
    return CycleBooks(
        gpu=device.gpu.uuid,
        memory_bytes=_book_memory(device, used, bookings),
        busy_us=known or 0,
        energy_mj=interval.energy_mj or 0,
        elapsed_us=interval.elapsed_us,
        active_mj=energy.active_mj,
        gone_mj=_book_energy(energy, bookings),
        estimates=estimates,
        bookings=bookings,
        is_watched=watched,
        knows_busy=known is not None,
        unnamed_us=weights.unnamed_us,
        switches=log.switches if log else None,
        switching_us=log.switching_ns // 1000 if log else None,
        logged_us=(log.end_ns - log.begin_ns) // 1000 if log else 0,
        windows=proven.windows if proven else (),
        compared=_compared(evidence, parties, bookings, clients, interval) if evidence and counts else {},
    )


def _opened(
    device: Device, interval: Interval, used: Mapping[Party, Usage], claimed: Reserved, serve: list[Process]
) -> Bookings:
    """Make a booking for each party that has a process or a claim, and one for the MPS servers."""
    bookings: Bookings = defaultdict(CycleBooking)
    for party in (*used, *claimed.claims):
        bookings[party] = CycleBooking()
    if serve:
        bookings[SERVERS] = CycleBooking(processes=serve, running=len(serve))
    _describe(bookings, used, claimed, interval)
    _describe_instances(device, bookings, used, claimed)
    return bookings


def _parties(used: Mapping[Party, Usage], serve: Sequence[Process]) -> dict[int, Party]:
    """Return the party of each process; for MPS clients, that of the servers.

    Clients run side by side in one slice, and the log names one of them, or their server. With MIG the instances are
    counted exactly without a log.
    """
    parties: dict[int, Party] = {process.pid: SERVERS for process in serve}
    for party, usage in used.items():
        for process in usage.processes:
            parties[process.pid] = SERVERS if serve and CLIENT in process.kinds else party
    return parties


def _resident(
    used: Mapping[Party, Usage],
    bookings: Bookings,
    parties: Mapping[int, Party],
    evidence: Evidence,
) -> Residency:
    """Find how long each party was on the card; MPS clients count together."""
    there = resident_us(evidence.log, parties) if evidence.log else {}
    for party in (*(party for party, usage in used.items() if not usage.is_client), *there):
        bookings[party].resident_us = there.get(party, 0)
    return residency(evidence, parties)


def _compared(
    evidence: Evidence,
    parties: Mapping[int, Party],
    bookings: Bookings,
    clients: Clients,
    interval: Interval,
) -> dict[Party, Comparison]:
    """Compare the samples, those that named MPS servers included, with the log."""
    if interval.is_gap:
        return {}
    named = {party: booking.named_us or 0 for party, booking in bookings.items()}
    named[SERVERS] = named.get(SERVERS, 0) + (clients.time_us or 0)
    return compared(evidence, parties, named, interval.elapsed_us)


def _book_busy(busy: int, weights: Weights, bookings: Bookings) -> None:
    """Divide the busy time, and set what a log proves of each part."""
    for party, method in weights.methods.items():
        bookings[party].method = method
    if weights.strange_us:
        bookings["unknown"].named_us = weights.strange_us
    for party, part in weights.divide(busy).items():
        bookings[party].busy_us = part
    for party, (least, most) in weights.bounds.items():
        booking = bookings[party]
        booking.least_us = min(busy * least // weights.whole, booking.busy_us)
        booking.most_us = max(-(-busy * most // weights.whole), booking.busy_us)


def _describe(bookings: Bookings, used: Mapping[Party, Usage], claimed: Reserved, interval: Interval) -> None:
    for party, booking in bookings.items():
        usage = used.get(party)
        if usage:
            booking.processes = usage.processes
            booking.running = usage.running
            booking.named_us = None if usage.is_client else usage.sm_us
        if isinstance(party, TenantKey) and party in claimed.claims:
            booking.claims = claimed.claims[party]
            booking.memory_limit_bytes = claimed.memory_limits.get(party)
        if isinstance(party, TenantKey) and party in claimed.shares:
            # A claim of 0 is one of unknown size.
            booking.share = claimed.shares[party] / PARTS or None
            # It is unknown who held it during a gap.
            held_us = 0 if interval.is_gap else interval.elapsed_us
            booking.allocated_us = claimed.shares[party] * held_us // PARTS


def _describe_instances(device: Device, bookings: Bookings, used: Mapping[Party, Usage], claimed: Reserved) -> None:
    """With MIG there are only profiling counters. They are a party's own if it is alone on its instance."""
    for instance in gpu_instances(device) if device.instances else ():
        seen = on_instance(instance, used, claimed, visible=True)
        parties = seen or on_instance(instance, used, claimed, visible=False)
        for party, booking in bookings.items():
            if isinstance(party, TenantKey) and party.mig in instance.migs:
                booking.instance_ratio = instance.sm_active if parties == [party] else None


def _set_ratios(bookings: Bookings, weights: Weights, elapsed_us: int, *, is_watched: bool) -> None:
    """Set which part of the card's time is booked to each party, unless it is unknown what the party did."""
    for party, booking in bookings.items():
        is_weighed = party in weights.methods and party not in weights.hidden
        is_away = is_watched and not booking.processes
        if elapsed_us and (is_weighed or is_away or not isinstance(party, TenantKey)):
            booking.sm_ratio = min(booking.busy_us / elapsed_us, 1.0)


def _book_memory(device: Device, used: Mapping[Party, Usage], bookings: Bookings) -> int | None:
    """Memory that cannot be measured is absent, and its bytes are booked as unknown."""
    used_bytes = value_of(device.readings, "memory_used_bytes")
    total = None if used_bytes is None else int(used_bytes)
    known = {party: usage.memory_bytes for party, usage in used.items() if usage.memory_bytes is not None}
    fitted, left = (known, 0) if total is None else within(total, known)
    for party, part in fitted.items():
        if bookings[party].running:
            bookings[party].memory_bytes = part
    if left:
        is_overhead = len(known) == len(used) and device.ability.sees_all
        rest = bookings["overhead" if is_overhead else "unknown"]
        rest.memory_bytes = (rest.memory_bytes or 0) + left
    return total


def _book_energy(parts: EnergyParts, bookings: Bookings) -> dict[TenantKey, int]:
    """Book each party's part. Return the parts of tenants that ran while the counter stood, and have left since."""
    gone: dict[TenantKey, int] = {}
    for party in {**parts.idle, **parts.active}:
        idle_mj = parts.idle.get(party, 0)
        energy_mj = idle_mj + parts.active.get(party, 0)
        if isinstance(party, TenantKey) and party not in bookings:
            gone[party] = energy_mj
        else:
            bookings[party].idle_mj = idle_mj
            bookings[party].energy_mj = energy_mj
    return gone
