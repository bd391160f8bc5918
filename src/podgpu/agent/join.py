"""The join: a card's reading, its books of this cycle and its books over time become one Card.

"Who is on this card" is answered here, once. Views only walk the answer.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from podgpu.agent.books import CardBooks, Totals
from podgpu.ledger.cycle import CycleBooking, TenantKey
from podgpu.ledger.shares import parts_of
from podgpu.ledger.usage import PodName
from podgpu.model import (
    ENDED,
    UNATTRIBUTED,
    Ability,
    Balance,
    Booking,
    Card,
    Charge,
    Claim,
    Device,
    Excused,
    Process,
    Rest,
    Tenant,
    VirtualGpu,
    Workload,
    value_of,
)
from podgpu.model.kube import grouped

ENERGY = "energy_joules_total"
ACTIVITY = frozenset({"utilization_ratio", "graphics_engine_active_ratio"})
DECIMALS = 6  # of a watt


class PowerSplit(Struct, frozen=True, kw_only=True):
    """Divides the card's power reading in the proportions of the energy that was last counted.

    So the power of all parties always adds up to the card's, and the only tenant of a card has all of it.
    `energy_mj` is what the card's counter moved by the last time it moved, in `energy_us` if that is known.
    `power_watts` is the card's own reading. Without one, power is energy divided by its time.
    """

    energy_mj: int | None = None
    energy_us: int | None = None
    power_watts: float | None = None

    def watts(self, part_mj: int | None) -> float | None:
        """Return the power of the party that was booked this part of the energy, None if that is unknown."""
        if part_mj is None or self.energy_mj is None:
            return None
        if self.power_watts is None:
            return part_mj * 1e3 / self.energy_us if self.energy_us else None
        if self.energy_mj == 0:
            return None  # nothing says how the power is divided
        if part_mj == self.energy_mj:
            return self.power_watts
        return round(self.power_watts * part_mj / self.energy_mj, DECIMALS)


def unattributed(device: Device) -> Card:
    """A card on which nothing is booked: the owners of its processes are unknown."""
    processes = [replace(process, mig=device.place(process)) for process in device.processes]
    rest = (Rest(reason="unknown", processes=_largest_first(processes)),) if processes else ()
    return replace(read(device), rest=rest)


def read(device: Device) -> Card:
    """A card with its own numbers alone."""
    return Card(
        gpu=device.gpu,
        at=device.at,
        seconds=device.seconds,
        fault=device.fault,
        ability=device.ability,
        refused=device.refused,
        readings=device.readings,
        instances=device.instances,
    )


class Join:
    """Joins the cards of one cycle. Workloads and start times are by the UID of the pod.

    `excused` and `charges` are by the UUID of the card. `unsettled` are the pods that were given something which is not
    understood.
    """

    def __init__(
        self,
        vgpus: Iterable[VirtualGpu],
        workloads: Mapping[str, Workload],
        started_at: Mapping[str, float | None],
        excused: Mapping[str, tuple[Excused, ...]] = MappingProxyType({}),
        charges: Mapping[str, tuple[Charge, ...]] = MappingProxyType({}),
        unsettled: frozenset[PodName] = frozenset(),
    ) -> None:
        self._vgpus = {(vgpu.gpu, vgpu.pod_uid, vgpu.container): vgpu for vgpu in vgpus}
        self._workloads = workloads
        self._started_at = started_at
        self._excused = excused
        self._charges = charges
        self._unsettled = unsettled

    def card(self, device: Device, books: CardBooks | None, claims: Iterable[Claim]) -> Card:
        """`claims` are those on this card: if it is silent, or not booked, nothing else says who is there."""
        balance = _balance(books) if books else None
        if books is None or device.fault is not None:
            held = _by_tenant(claims)
        else:
            held = {tenant: totals.booking.claims for tenant, totals in books.tenants.items() if totals.booking}
        books = books or CardBooks()
        power = _power_split(device, books)
        tenants = sorted({*books.tenants, *held})
        return replace(
            read(device),
            ability=_ability(device, balance),
            tenants=tuple(self._tenant(key, books, power, held[key]) for key in tenants if key in held),
            ended=tuple(self._tenant(key, books, power, ()) for key in tenants if key not in held),
            rest=tuple(_rests(books, power)) if balance else (),
            balance=balance,
            excused=self._excused.get(device.gpu.uuid, ()),
            charges=self._charges.get(device.gpu.uuid),
        )

    def _tenant(self, key: TenantKey, books: CardBooks, power: PowerSplit, claims: Iterable[Claim]) -> Tenant:
        totals = books.tenants.get(key, _NOTHING)
        idle = books.is_idle(key, totals.booking) if totals.booking else None
        claims, uid = tuple(claims), key.container.pod_uid
        return Tenant(
            container=key.container,
            mig=key.mig,
            workload=self._workloads.get(uid),
            held_since=self._started_at.get(uid) if claims else None,
            claims=claims,
            processes=_largest_first(totals.booking.processes) if totals.booking else (),
            booking=_booking(totals, power, idle=idle),
            idle=idle,
            vgpu=self._vgpu(key),
            unsettled=(not claims and (key.container.namespace, key.container.pod) in self._unsettled) or None,
        )

    def _vgpu(self, key: TenantKey) -> VirtualGpu | None:
        """A tenant can write any card into its library's file: it counts where the container is a tenant."""
        if key.mig or not key.container.pod_uid:
            return None
        return self._vgpus.get((key.gpu, key.container.pod_uid, key.container.container))


_NOTHING = Totals()
_NO_BOOKING = CycleBooking()
# Each reason is there from the start: a counter that first appears with a value would hide its first increase.
_NO_RESTS = {reason: Rest(reason=reason) for reason in sorted((*UNATTRIBUTED, ENDED))}


def _ability(device: Device, balance: Balance | None) -> Ability:
    """A card without an energy counter has no energy to book: that is unknown, not 0. The same goes for busy time."""
    activity = device.readings
    if device.instances:
        sized = [instance for instance in device.instances if parts_of(device, instance) is not None]
        activity = tuple(reading for instance in sized for reading in instance.readings)
    return replace(
        device.ability,
        counts_energy=bool(balance and balance.energy_mj) or value_of(device.readings, ENERGY) is not None,
        counts_busy=bool(balance and balance.busy_us) or any(reading.metric in ACTIVITY for reading in activity),
    )


def _balance(books: CardBooks) -> Balance:
    cycle = books.cycle
    rest = [totals for reason, totals in books.rest.items() if reason != ENDED]
    return Balance(
        memory_bytes=cycle.memory_bytes if cycle else None,
        busy_ratio=cycle.busy_ratio if cycle else None,
        busy_us=books.whole.busy_us,
        energy_mj=books.whole.energy_mj,
        unattributed_least_us=sum(totals.least_busy_us for totals in rest),
        unattributed_most_us=sum(totals.most_busy_us for totals in rest),
        band=books.last_period,
        switches=books.switches,
        switching_us=books.switching_us,
        switching_ratio=cycle.switching_ratio if cycle else None,
        switching_peak_ratio=books.switching_peak_ratio if cycle else None,
    )


def _power_split(device: Device, books: CardBooks) -> PowerSplit:
    if books.cycle is None:
        return PowerSplit()
    watts = value_of(device.readings, "power_watts")
    return PowerSplit(energy_mj=books.moved_mj, energy_us=books.moved_us, power_watts=watts)


def _by_tenant(claims: Iterable[Claim]) -> dict[TenantKey, list[Claim]]:
    return grouped(claims, lambda claim: TenantKey(claim.gpu, claim.mig, claim.container))


def _booking(totals: Totals, power: PowerSplit, *, idle: bool | None) -> Booking:
    """Gauges are those of this cycle: a tenant that ended, or whose card is silent, has counters alone."""
    booking = totals.booking or _NO_BOOKING
    is_present = totals.booking is not None
    return Booking(
        method=totals.method,
        processes=None if idle is None else booking.running,
        memory_bytes=booking.memory_bytes,
        memory_limit_bytes=booking.memory_limit_bytes,
        sm_ratio=booking.sm_ratio,
        instance_ratio=booking.instance_ratio,
        power_watts=power.watts(totals.moved_mj) if is_present else None,
        allocated_ratio=booking.share,
        bookable=totals.is_bookable,
        busy_us=totals.busy_us,
        energy_mj=totals.energy_mj,
        allocated_us=totals.allocated_us,
        unsized_us=totals.unsized_us or None,
        unmeasured_us=totals.unmeasured_us,
        resident_us=totals.resident_us,
        settled_busy_us=totals.settled_busy_us,
        least_busy_us=totals.least_busy_us,
        most_busy_us=totals.most_busy_us,
        least_energy_mj=totals.least_energy_mj,
        most_energy_mj=totals.most_energy_mj,
        likely_least_busy_us=totals.likely_least_busy_us,
        likely_most_busy_us=totals.likely_most_busy_us,
        likely_least_energy_mj=totals.likely_least_energy_mj,
        likely_most_energy_mj=totals.likely_most_energy_mj,
        band=totals.band if is_present else None,
        sampling=booking.sampling,
        last_active_at=totals.last_active_at if is_present else None,
    )


def _rests(books: CardBooks, power: PowerSplit) -> Iterator[Rest]:
    """Energy that was booked to none of the present parties is unknown: it may belong to a party that has ended."""
    known = [totals.moved_mj or 0 for totals in (*books.tenants.values(), *books.rest.values())]
    lost_mj = (books.moved_mj or 0) - sum(known)
    for reason, none in _NO_RESTS.items():
        totals = books.rest.get(reason)
        if totals is None and not (lost_mj and reason == "unknown"):
            yield none
            continue
        totals = totals or _NOTHING
        drawn_mj = (totals.moved_mj or 0) + (lost_mj if reason == "unknown" else 0)
        booking = totals.booking or _NO_BOOKING
        yield Rest(
            reason=reason,
            memory_bytes=booking.memory_bytes,
            sm_ratio=booking.sm_ratio or None,
            power_watts=power.watts(drawn_mj or None),
            busy_us=totals.busy_us,
            energy_mj=totals.energy_mj,
            resident_us=totals.resident_us,
            band=totals.band,
            processes=_largest_first(booking.processes) if booking.processes else (),
        )


def _largest_first(processes: list[Process]) -> tuple[Process, ...]:
    if len(processes) < 2:
        return tuple(processes)
    return tuple(sorted(processes, key=lambda process: (-(process.memory_bytes or 0), process.pid)))
