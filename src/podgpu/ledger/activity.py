"""How a device's active time and energy are divided: each party's weight, and the method that it was found by.

What is not accounted for stays unattributed, so that a process that was not seen never adds to another one's bill.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from podgpu.ledger.cycle import Interval, Party, TenantKey
from podgpu.ledger.residency import Residency
from podgpu.ledger.samples import SAMPLE_US
from podgpu.ledger.shares import PARTS, GpuInstance, Reserved, gpu_instances, split
from podgpu.ledger.usage import Usage, added, measured
from podgpu.model import Device

# An instance's activity is divided this finely: that of an instance hardly in use is a few millionths.
FINE = 1_000_000
SERVERS = "overhead"  # what the processes of MPS servers are booked to


class Weights(Struct, kw_only=True, gc=False):
    """Party `p` has `of[p] / whole` of what was active; the rest is unknown.

    A `hidden` party may have some of the rest: what it did is not known. `unnamed_us` is busy time for which no sample
    has named the only party yet, `strange_us` the part of it that is taken to be another process's. `bounds` are what a
    log of context switches proves: for each party the least and the most of `whole`.
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

    def divide(self, total: int) -> dict[Party, int]:
        """Divide by the weights; what they leave is unknown."""
        of = dict(self.of)
        left = self.whole - sum(of.values())
        if left > 0 or not any(of.values()):
            of["unknown"] = of.get("unknown", 0) + max(left, 1)
        return split(total, of)


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
    """Where processes cannot be seen, or their owners are unknown, the tenants with claims are taken for the users."""
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
        return _on_one(list(reserved.claims), {}, reserved, interval)
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
    known = [instance.activity for instance in gpu_instances(device) if instance.activity is not None]
    return min(sum(known), PARTS) * interval.elapsed_us // PARTS if known else None


def on_instance(
    instance: GpuInstance, usages: Mapping[Party, Usage], reserved: Reserved, *, visible: bool
) -> list[Party]:
    """List the users of an instance; where processes are not visible, the holders of its parts."""
    if visible:
        return [party for party, usage in usages.items() if usage.migs & instance.migs]
    return [account for account in reserved.claims if account.mig in instance.migs]


def _on_one(
    parties: Sequence[Party],
    usages: Mapping[Party, Usage],
    reserved: Reserved,
    interval: Interval,
    clients_us: int | None = 0,
) -> Weights:
    if len(parties) == 1:
        usage = usages.get(parties[0])
        return _alone(parties[0], added(usage.sm_us, clients_us) if usage else None, interval)
    if usages and measured(usages.values()):
        return _by_measure(usages, interval.busy_us)
    return _by_reservation(parties, reserved.shares, PARTS)


def _alone(party: Party, named: int | None, interval: Interval) -> Weights:
    """Give the only party all of it, except for busy time that no sample named it for: a hidden process had that.

    A sample may come late, and it gives whole per cents. On an H200 the samples of six tenants, each alone, had 98 to
    105 % of the card's busy time and never lagged by more than 60 ms. Where the busy time is that of a moment, the two
    can differ by anything. There busy time counts as hidden only if no sample named the party at all.
    """
    weights = Weights(of={party: 1}, whole=1, methods={party: "exclusive"})
    busy = interval.busy_us
    if named is None or busy is None or (interval.is_sampled and named):
        return weights
    rounded_off = interval.elapsed_us // 100
    if not named and busy > rounded_off:
        rounded_off = 0
    unnamed = max(0, interval.unnamed_us + busy - named - rounded_off)
    weights.unnamed_us = min(unnamed, SAMPLE_US)
    weights.strange_us = min(unnamed - weights.unnamed_us, busy)
    if weights.strange_us:
        weights.of, weights.whole = {party: busy - weights.strange_us}, busy
        weights.methods = {party: "measured"}
    return weights


def _by_measure(usages: Mapping[Party, Usage], busy: int | None) -> Weights:
    of = {party: usage.sm_us or 0 for party, usage in usages.items()}
    return Weights(of=of, whole=max(sum(of.values()), busy or 0), methods=dict.fromkeys(of, "measured"))


def _divides(residency: Residency, usages: Mapping[Party, Usage]) -> bool:
    """Whether the log saw busy time, and there is more than one party to divide it among."""
    return residency.busy_ns > 0 and len((residency.stays.keys() - {SERVERS}) | usages.keys()) > 1


def _by_residency(residency: Residency, usages: Mapping[Party, Usage], reserved: Reserved, served_us: int) -> Weights:
    """A party without a slice did nothing. Where the log is blind, the samples divide, and prove nothing.

    Slices of MPS clients belong to all of them together. The part of each client is not in the log.
    """
    named: dict[Party, int] = {party: usage.sm_us or 0 for party, usage in usages.items()}
    sampled = split(residency.blind_ns, named | {SERVERS: served_us})
    weights = Weights(whole=residency.busy_ns + residency.blind_ns)
    for party in (*usages, *(party for party in residency.stays if party not in usages)):
        stay = residency.stays.get(party)
        least, most, booked = (stay.least_ns, stay.most_ns, stay.booked_ns) if stay else (0, 0, 0)
        weights.give(party, booked + sampled.get(party, 0), "resident")
        weights.bounds[party] = least, most + residency.blind_ns
    clients = _clients(usages)
    if clients:
        served, (_, most) = weights.of.pop(SERVERS, 0), weights.bounds.pop(SERVERS, (0, 0))
        weights.methods.pop(SERVERS, None)
        _give_served(weights, clients, served, reserved)
        weights.bounds |= {party: (weights.bounds[party][0], weights.bounds[party][1] + most) for party in clients}
    return weights


def _with_clients(
    weights: Weights, usages: Mapping[Party, Usage], reserved: Reserved, time: int | None, busy: int
) -> Weights:
    """Divide the time of MPS clients among them by their claims: it cannot be measured for each."""
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
    """If some processes may not be seen, no party is taken to be alone: each has what was measured, and no more."""
    if device.instances or not measured(usages.values()):
        return Weights()
    return _by_measure(usages, busy)


def _by_reservation(parties: Sequence[Party], shares: Mapping[TenantKey, int], whole: int) -> Weights:
    """Divide among parties that cannot be measured. If one has no claim, the others have no more than their claims."""
    claimed: dict[Party, int] = {
        party: shares[party] for party in parties if isinstance(party, TenantKey) and shares.get(party)
    }
    if not claimed:
        methods = dict.fromkeys(parties, "equal")
        return Weights(of=dict.fromkeys(parties, 1), whole=len(parties), methods=methods)
    total = sum(claimed.values())
    whole = total if len(claimed) == len(parties) else max(total, whole)
    return Weights(of=claimed, whole=whole, methods=dict.fromkeys(claimed, "reserved"))


def _by_instance(device: Device, usages: Mapping[Party, Usage], reserved: Reserved, *, visible: bool) -> Weights:
    """Activity of each instance by its share of the card; within an instance nothing can be measured.

    Where no instance reports its activity, the size of an instance in use stands in for it. Where the size of one is
    not known, no party's part is.
    """
    weights = Weights()
    instances = gpu_instances(device)
    sized = [(instance, instance.parts) for instance in instances if instance.parts is not None]
    if len(sized) < len(instances):
        return weights
    is_reported = any(instance.activity is not None for instance in instances)
    for instance, parts in sized:
        parties = on_instance(instance, usages, reserved, visible=visible)
        activity = instance.activity
        if activity is None:
            activity = parts if parties else 0
        weights.whole += activity * FINE
        if is_reported and instance.activity is None:
            continue  # what it did is unknown, and booked to no party
        within = _by_reservation(parties, reserved.shares, parts)
        for party, weight in within.of.items():
            weights.give(party, activity * FINE * weight // within.whole, _method(instance, parties))
    return weights


def _method(instance: GpuInstance, parties: Sequence[Party]) -> str:
    if instance.activity is None:
        return "reserved"
    return "instance" if len(parties) == 1 else "weighted"
