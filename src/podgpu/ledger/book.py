"""One device's books for one cycle: every byte, busy microsecond and millijoule to a party, exactly.

memory   what its processes were measured to hold; the rest is overhead
busy     by the weights of `activity`; the rest is unknown
energy   see `energy`
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podgpu.ledger.activity import SERVERS, Clients, Weights, busy_us, on_instance, weigh
from podgpu.ledger.cycle import (
    NO_ENERGY,
    CycleBooking,
    CycleBooks,
    EnergyParts,
    Interval,
    Party,
    SpotCheck,
    TenantKey,
)
from podgpu.ledger.energy import settle
from podgpu.ledger.residency import Evidence, Residency, compared, residency, resident_us
from podgpu.ledger.shares import PARTS, Reserved, gpu_instances, reserved, within
from podgpu.ledger.spot_checks import Correction, corrected, shares, spot_check
from podgpu.ledger.usage import (
    CLIENT,
    Usage,
    are_certain,
    is_watched,
    measured,
    nameless_pods,
    served,
    serving,
    usages,
)
from podgpu.model import Claim, ContainerRef, Device, Holder, Process, SpotLog, value_of

Bookings = defaultdict[Party, CycleBooking]
CHECKED = {"measured": "checked"}  # what a method is called if it was corrected


class Checked(Struct, frozen=True, kw_only=True, gc=False):
    """What is known of a card whose log of context switches is read at random moments.

    `logs` are the readings since the previous cycle, `corrections` what earlier ones say of the samples.
    """

    logs: Sequence[SpotLog] = ()
    corrections: Mapping[Party, Correction] = {}


def book(
    device: Device,
    interval: Interval,
    claims: Iterable[Claim],
    holders: Mapping[int, Holder],
    servers: Collection[int] = (),
    evidence: Evidence | None = None,
    estimates: EnergyParts = NO_ENERGY,
    checked: Checked | None = None,
) -> CycleBooks:
    """Book one cycle of a card. `claims` are those on this card, `servers` the PIDs of its MPS servers.

    `evidence` is what the driver's log of context switches says if it is read throughout, `checked` if it is read now
    and then. `estimates` are those of the energy that was drawn since the counter last moved.
    """
    claimed = reserved(claims, device)
    used = usages(device, holders, interval.elapsed_us, servers)
    serve = serving(device, holders, servers)
    bookings = _opened(device, interval, used, claimed, serve)
    certain = are_certain(holders[process.pid] for process in serve)
    clients = Clients(served(serve, interval.elapsed_us), certain=certain)
    log = evidence.log if evidence else None
    counts = (log is not None or checked is not None) and certain and not device.instances
    parties = _parties(used, serve) if counts else {}
    proven = _resident(used, bookings, parties, evidence) if evidence and log and counts else None
    watched, known = is_watched(device, used), busy_us(device, interval)
    named = _named(used, clients) if counts and measured(used.values()) else {}
    by_sample = shares(named)
    checks = _checks(evidence, checked, parties, by_sample, interval) if by_sample else ()
    corrections = checked.corrections if checked and named else {}
    if corrections:
        used, clients = _corrected(used, clients, corrected(named, corrections))
    weights = weigh(device, used, claimed, interval, clients=clients, residency=proven)
    if corrections:
        weights.methods = {party: CHECKED.get(method, method) for party, method in weights.methods.items()}
    _book_busy(known or 0, weights, bookings)
    if known is not None:
        _set_ratios(bookings, weights, interval.elapsed_us, nameless_pods(used), is_watched=watched)
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
        checks=checks,
        named=by_sample,
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


def _named(used: Mapping[Party, Usage], clients: Clients) -> dict[Party, int]:
    """The sampled time of each party; that of MPS clients, which samples name by their server, together."""
    named: dict[Party, int] = {party: usage.sm_us or 0 for party, usage in used.items() if not usage.is_client}
    if clients.time_us:
        named[SERVERS] = clients.time_us
    return named


def _checks(
    evidence: Evidence | None,
    checked: Checked | None,
    parties: Mapping[int, Party],
    named: Mapping[Party, float],
    interval: Interval,
) -> tuple[SpotCheck, ...]:
    """Put what the log says beside the samples of the same time."""
    if interval.is_gap:
        return ()
    busy = min(1.0, (interval.busy_us or 0) / interval.elapsed_us) if interval.elapsed_us else 0.0
    found = [spot_check(log, parties, named, busy) for log in checked.logs] if checked else []
    if evidence:
        found.append(compared(evidence, parties, named))
    return tuple(check for check in found if check)


def _corrected(
    used: Mapping[Party, Usage], clients: Clients, times: Mapping[Party, int]
) -> tuple[dict[Party, Usage], Clients]:
    """Put corrected times in place of the sampled ones."""
    own = {party: replace(usage, sm_us=times.get(party, usage.sm_us)) for party, usage in used.items()}
    return own, Clients(times.get(SERVERS, clients.time_us), certain=clients.certain)


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
        if not isinstance(party, TenantKey) or party not in claimed.claims:
            continue
        booking.claims = claimed.claims[party]
        booking.memory_limit_bytes = claimed.memory_limits.get(party)
        held_us = 0 if interval.is_gap else interval.elapsed_us  # it is unknown who held it during a gap
        if party in claimed.shares:
            booking.share = claimed.shares[party] / PARTS
            booking.allocated_us = claimed.shares[party] * held_us // PARTS
        else:
            booking.unsized_us = held_us


def _describe_instances(device: Device, bookings: Bookings, used: Mapping[Party, Usage], claimed: Reserved) -> None:
    """With MIG there are only profiling counters. They are a party's own if it is alone on its instance."""
    for instance in gpu_instances(device) if device.instances else ():
        seen = on_instance(instance, used, claimed, visible=True)
        parties = seen or on_instance(instance, used, claimed, visible=False)
        for party, booking in bookings.items():
            if isinstance(party, TenantKey) and party.mig in instance.migs:
                booking.instance_ratio = instance.sm_active if parties == [party] else None


def _set_ratios(
    bookings: Bookings, weights: Weights, elapsed_us: int, nameless: Collection[ContainerRef], *, is_watched: bool
) -> None:
    """Set which part of the card's time is booked to each party, unless it is unknown what the party did.

    `nameless` are pods with processes whose containers are not known.
    """
    for party, booking in bookings.items():
        is_weighed = party in weights.methods and party not in weights.hidden
        is_away = is_watched and not booking.processes
        if is_away and nameless and isinstance(party, TenantKey):
            is_away = replace(party.container, container="") not in nameless
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
