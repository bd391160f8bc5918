"""How a device's active time and energy are divided: the weights, and the method each party's came by.

Nothing is guessed upwards: what is not accounted for stays unattributed, so that a process nobody saw never adds to
another one's bill.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from podgpu.ledger.band import LOOK_US
from podgpu.ledger.cycle import Interval, Party, TenantKey
from podgpu.ledger.residency import Residency
from podgpu.ledger.shares import PARTS, GpuInstance, Reserved, gpu_instances, split
from podgpu.ledger.usage import Usage, measured
from podgpu.model import Device

# An instance's activity is divided this finely: that of one hardly in use is a few millionths.
FINE = 1_000_000
SERVERS = "overhead"  # whose the processes of MPS servers are


class Weights(Struct, kw_only=True, gc=False):
    """Party `p` has `of[p] / whole` of what was active; whoever is not named has the rest.

    Whoever is `hidden` may have some of the rest: nobody knows what it did. `unnamed_us` is busy time of whoever is
    alone that no look has named yet, `strange_us` the part of it that is taken to be somebody else's. `bounds` are
    what a log of context switches proves: for each party the least and the most of `whole`.
    """

    of: dict[Party, int] = field(default_factory=dict)
    whole: int = 0
    methods: dict[Party, str] = field(default_factory=dict)
    hidden: set[Party] = field(default_factory=set)
    unnamed_us: int = 0
    strange_us: int = 0
    bounds: dict[Party, tuple[int, int]] = field(default_factory=dict)

    def give(self, party: Party, weight: int, method: str) -> None:
        self.of[party] = self.of.get(party, 0) + weight
        self.methods[party] = method


class Clients(Struct, frozen=True, gc=False):
    """The time that clients of MPS had together, None where it is not reported.

    Where it is not `certain` who served them, their time and others' cannot be separated.
    """

    time_us: int | None = 0
    certain: bool = True


NO_CLIENTS = Clients()


def weigh(
    device: Device,
    usages: Mapping[Party, Usage],
    reserved: Reserved,
    interval: Interval,
    *,
    clients: Clients = NO_CLIENTS,
    residency: Residency | None = None,
) -> Weights:
    """Where processes cannot be seen, or nobody knows whose they are, claimants are taken for the users."""
    if interval.is_gap:
        return Weights()
    visible = device.ability.sees_processes and device.ability.knows_owners
    if residency and visible and _divides(residency, usages):
        return _by_residency(residency, usages, reserved, clients.time_us or 0)
    if visible and not device.ability.sees_all:
        return _of_those_seen(device, usages, interval.busy_us)
    if device.instances:
        return _by_instance(device, usages, reserved, visible=visible)
    if not visible:
        return _on_one(list(reserved.shares), {}, reserved, interval)
    if not clients.certain:
        sampled = sum(usage.sm_us or 0 for usage in usages.values()) + (clients.time_us or 0)
        weights = _by_measure(usages, max(interval.busy_us or 0, sampled))
        weights.hidden.update(_clients(usages))
        return weights
    weights = _on_one(list(usages), usages, reserved, interval, clients.time_us)
    return _with_clients(weights, usages, reserved, clients.time_us, interval.busy_us or 0)


def busy_us(device: Device, interval: Interval) -> int | None:
    """Return the time the device was busy, None if that is unknown; with MIG, the instances' times by their size."""
    if interval.is_gap or not device.instances:
        return interval.busy_us
    known = [one.activity for one in gpu_instances(device) if one.activity is not None]
    return min(sum(known), PARTS) * interval.elapsed_us // PARTS if known else None


def on_instance(
    one: GpuInstance, usages: Mapping[Party, Usage], reserved: Reserved, *, visible: bool
) -> list[Party]:
    """List who uses an instance; where nobody can be seen, who was given a part of it."""
    if visible:
        return [party for party, usage in usages.items() if usage.migs & one.migs]
    return [account for account in reserved.claims if account.mig in one.migs]


def _on_one(
    parties: Sequence[Party],
    usages: Mapping[Party, Usage],
    reserved: Reserved,
    interval: Interval,
    clients_us: int | None = 0,
) -> Weights:
    if len(parties) == 1:
        usage = usages.get(parties[0])
        named = (
            None if usage is None or usage.sm_us is None or clients_us is None else usage.sm_us + clients_us
        )
        return _alone(parties[0], named, interval)
    if usages and measured(usages.values()):
        return _by_measure(usages, interval.busy_us)
    return _by_reservation(parties, reserved.shares, PARTS)


def _alone(party: Party, named: int | None, interval: Interval) -> Weights:
    """Give the only party all of it, except for busy time that no look named it for: a process nobody sees had that.

    A look may come late, and it gives whole per cents. On an H200 the looks of six tenants, each alone, had 98 to 105 %
    of the card's busy time and never lagged by more than 60 ms. Where the busy time is that of a moment, the two can
    differ by anything, so there it must be that no look named it at all.
    """
    weights = Weights(of={party: 1}, whole=1, methods={party: "exclusive"})
    busy = interval.busy_us
    if named is None or busy is None or (interval.is_sampled and named):
        return weights
    rounded_off = interval.elapsed_us // 100
    if not named and busy > rounded_off:
        rounded_off = 0
    unnamed = max(0, interval.unnamed_us + busy - named - rounded_off)
    weights.unnamed_us = min(unnamed, LOOK_US)
    weights.strange_us = min(unnamed - weights.unnamed_us, busy)
    if weights.strange_us:
        weights.of, weights.whole = {party: busy - weights.strange_us}, busy
        weights.methods = {party: "measured"}
    return weights


def _by_measure(usages: Mapping[Party, Usage], busy: int | None) -> Weights:
    of = {party: usage.sm_us or 0 for party, usage in usages.items()}
    return Weights(of=of, whole=max(sum(of.values()), busy or 0), methods=dict.fromkeys(of, "measured"))


def _divides(residency: Residency, usages: Mapping[Party, Usage]) -> bool:
    """Whether there is more than one to divide among, and the log saw some of it."""
    return residency.busy_ns > 0 and len((residency.stays.keys() - {SERVERS}) | usages.keys()) > 1


def _by_residency(
    residency: Residency, usages: Mapping[Party, Usage], reserved: Reserved, served_us: int
) -> Weights:
    """A party without a slice did nothing. Where the log is blind, looks say whose it was, and prove nothing.

    Slices of MPS clients are theirs together. What each had of them is not in the log.
    """
    named: dict[Party, int] = {party: usage.sm_us or 0 for party, usage in usages.items()}
    looks = split(residency.blind_ns, named | {SERVERS: served_us})
    weights = Weights(whole=residency.busy_ns + residency.blind_ns)
    for party in (*usages, *(one for one in residency.stays if one not in usages)):
        stay = residency.stays.get(party)
        least, most, booked = (stay.least_ns, stay.most_ns, stay.booked_ns) if stay else (0, 0, 0)
        weights.give(party, booked + looks.get(party, 0), "resident")
        weights.bounds[party] = least, most + residency.blind_ns
    clients = _clients(usages)
    if clients:
        served, (_, most) = weights.of.pop(SERVERS, 0), weights.bounds.pop(SERVERS, (0, 0))
        weights.methods.pop(SERVERS, None)
        _give_served(weights, clients, served, reserved)
        weights.bounds |= {
            party: (weights.bounds[party][0], weights.bounds[party][1] + most) for party in clients
        }
    return weights


def _with_clients(
    weights: Weights, usages: Mapping[Party, Usage], reserved: Reserved, time: int | None, busy: int
) -> Weights:
    """Divide the time of MPS clients among them by their claims: nobody can measure it for each."""
    clients = _clients(usages)
    if not clients or len(usages) == 1 or "measured" not in weights.methods.values():
        return weights
    if not time:
        weights.hidden.update(clients if time is None else ())
        return weights
    _give_served(weights, clients, time, reserved)
    weights.whole = max(sum(usage.sm_us or 0 for usage in usages.values()) + time, busy)
    return weights


def _give_served(weights: Weights, clients: Sequence[Party], served: int, reserved: Reserved) -> None:
    within = _by_reservation(clients, reserved.shares, PARTS)
    weights.hidden.update(party for party in clients if party not in within.of)
    for party in clients:
        weights.give(party, served * within.of.get(party, 0) // within.whole, "weighted")


def _clients(usages: Mapping[Party, Usage]) -> list[Party]:
    return [party for party, usage in usages.items() if usage.is_client]


def _of_those_seen(device: Device, usages: Mapping[Party, Usage], busy: int | None) -> Weights:
    """Where others may be there too, nobody is taken to be alone: each has what was measured, and no more."""
    if device.instances or not measured(usages.values()):
        return Weights()
    return _by_measure(usages, busy)


def _by_reservation(parties: Sequence[Party], shares: Mapping[TenantKey, int], whole: int) -> Weights:
    """Among parties that cannot be measured. One without a claim leaves the others no more than their claims."""
    claimed: dict[Party, int] = {
        party: shares[party] for party in parties if isinstance(party, TenantKey) and shares.get(party)
    }
    if not claimed:
        return Weights(
            of=dict.fromkeys(parties, 1), whole=len(parties), methods=dict.fromkeys(parties, "equal")
        )
    total = sum(claimed.values())
    whole = total if len(claimed) == len(parties) else max(total, whole)
    return Weights(of=claimed, whole=whole, methods=dict.fromkeys(claimed, "reserved"))


def _by_instance(
    device: Device, usages: Mapping[Party, Usage], reserved: Reserved, *, visible: bool
) -> Weights:
    """Activity of each instance by its share of the card; within an instance nothing can be measured.

    Where no instance reports its activity, its size stands in for it if somebody is there. Where the size of one is not
    known, neither is anybody's part.
    """
    weights = Weights()
    instances = gpu_instances(device)
    sized = [(one, one.parts) for one in instances if one.parts is not None]
    if len(sized) < len(instances):
        return weights
    is_reported = any(one.activity is not None for one in instances)
    for one, parts in sized:
        parties = on_instance(one, usages, reserved, visible=visible)
        activity = one.activity
        if activity is None:
            activity = parts if parties else 0
        weights.whole += activity * FINE
        if is_reported and one.activity is None:
            continue  # it may have done anything, and that is on nobody's bill
        within = _by_reservation(parties, reserved.shares, parts)
        for party, weight in within.of.items():
            weights.give(party, activity * FINE * weight // within.whole, _method(one, parties))
    return weights


def _method(one: GpuInstance, parties: Sequence[Party]) -> str:
    if one.activity is None:
        return "reserved"
    return "instance" if len(parties) == 1 else "weighted"
