"""The join: a card's reading, its sheet of this cycle and its books over time become one Card.

"Who is on this card" is answered here, once. Whatever comes after walks the answer.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from podgpu.agent.books import CardBooks, Totals
from podgpu.ledger.cycle import CycleBooks, TenantKey
from podgpu.ledger.shares import parts_of
from podgpu.model import (
    Ability,
    Balance,
    Booking,
    Card,
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

ENERGY = "energy_joules_total"
ACTIVITY = frozenset({"utilization_ratio", "graphics_engine_active_ratio"})


DECIMALS = 6  # of a watt


class PowerSplit(Struct, frozen=True, kw_only=True):
    """`energy_mj` is what the card's counter moved by the last time it moved, in `energy_us` if that is known.

    `power_watts` is the card's own reading, None if it has none. Then power is energy over its time.
    """

    energy_mj: int | None = None
    energy_us: int | None = None
    power_watts: float | None = None

    def watts(self, part_mj: int | None) -> float | None:
        """Return the power of whoever was booked this part of the energy, None if that is unknown."""
        if part_mj is None or self.energy_mj is None:
            return None
        if self.power_watts is None:
            return part_mj * 1e3 / self.energy_us if self.energy_us else None
        if self.energy_mj == 0:
            return None  # nothing says how the power is divided
        if part_mj == self.energy_mj:
            return self.power_watts
        return round(self.power_watts * part_mj / self.energy_mj, DECIMALS)


def bare(device: Device) -> Card:
    """A card that nobody is booked on: whose its processes are is unknown."""
    processes = [replace(process, mig=device.place(process)) for process in device.processes]
    return Card(
        gpu=device.gpu,
        at=device.at,
        seconds=device.seconds,
        fault=device.fault,
        ability=device.ability,
        refused=device.refused,
        readings=device.readings,
        instances=device.instances,
        rest=(Rest(reason="unknown", processes=_largest_first(processes)),) if processes else (),
    )


class Join:
    """What the join of all cards of a cycle has in common. Workloads and start times are by the UID of the pod.

    `excused` are by the UUID of the card.
    """

    def __init__(
        self,
        vgpus: Iterable[VirtualGpu],
        workloads: Mapping[str, Workload],
        started_at: Mapping[str, float | None],
        excused: Mapping[str, tuple[Excused, ...]] = MappingProxyType({}),
    ) -> None:
        self._vgpus = {(vgpu.gpu, vgpu.pod_uid, vgpu.container): vgpu for vgpu in vgpus}
        self._workloads = workloads
        self._started_at = started_at
        self._excused = excused

    def card(self, device: Device, books: CardBooks | None, claims: Iterable[Claim]) -> Card:
        """`claims` are those on this card: if it is silent, or not booked, nothing else says who is there."""
        balance = _balance(books) if books else None
        if books is None or device.fault is not None:
            held = _by_account(claims)
        else:
            held = {account: totals.entry.claims for account, totals in books.tenants.items() if totals.entry}
        books = books or CardBooks()
        draw = _draw(device, books)
        accounts = sorted({*books.tenants, *held})
        return Card(
            gpu=device.gpu,
            at=device.at,
            seconds=device.seconds,
            fault=device.fault,
            ability=_ability(device, balance),
            refused=device.refused,
            readings=device.readings,
            instances=device.instances,
            tenants=tuple(
                self._tenant(tenant, books, draw, held[tenant]) for tenant in accounts if tenant in held
            ),
            ended=tuple(self._tenant(tenant, books, draw, ()) for tenant in accounts if tenant not in held),
            rest=tuple(_rests(books, draw)),
            balance=balance,
            excused=self._excused.get(device.gpu.uuid, ()),
        )

    def _tenant(
        self, account: TenantKey, books: CardBooks, draw: PowerSplit, claims: Iterable[Claim]
    ) -> Tenant:
        totals = books.tenants.get(account, _NOTHING)
        idle, claims, uid = _idle(totals, books), tuple(claims), account.container.pod_uid
        return Tenant(
            container=account.container,
            mig=account.mig,
            workload=self._workloads.get(uid),
            held_since=self._started_at.get(uid) if claims else None,
            claims=claims,
            processes=_largest_first(totals.entry.processes) if totals.entry else (),
            booking=_booking(totals, draw, idle=idle),
            idle=idle,
            vgpu=self._vgpu(account),
        )

    def _vgpu(self, account: TenantKey) -> VirtualGpu | None:
        """A tenant can write any card into its library's file: it counts where the container is a tenant."""
        if account.mig or not account.container.pod_uid or not self._vgpus:
            return None
        return self._vgpus.get((account.gpu, account.container.pod_uid, account.container.container))


_NOTHING = Totals()


def _ability(device: Device, balance: Balance | None) -> Ability:
    """A card without an energy counter has no energy to book: that is unknown, not 0. The same goes for busy time."""
    metrics = {reading.metric for reading in device.readings}
    activity = metrics
    if device.instances:
        sized = [instance for instance in device.instances if parts_of(device, instance) is not None]
        activity = {reading.metric for instance in sized for reading in instance.readings}
    return replace(
        device.ability,
        counts_energy=bool(balance and balance.energy_mj) or ENERGY in metrics,
        counts_busy=bool(balance and balance.busy_us) or not ACTIVITY.isdisjoint(activity),
    )


def _balance(books: CardBooks) -> Balance:
    return Balance(
        memory_bytes=books.sheet.memory_bytes if books.sheet else None,
        busy_ratio=_busy_ratio(books.sheet) if books.sheet else None,
        busy_us=books.whole.busy_us,
        energy_mj=books.whole.energy_mj,
        band=books.last_period,
        switches=books.switches,
        switching_us=books.switching_us,
        switching_ratio=_switching_ratio(books.sheet) if books.sheet else None,
    )


def _switching_ratio(sheet: CycleBooks) -> float | None:
    """Of the time that the log is about, which ends a little before the cycle does. It has every moment only once."""
    if sheet.switching_us is None or not sheet.logged_us:
        return None
    return sheet.switching_us / sheet.logged_us


def _busy_ratio(sheet: CycleBooks) -> float | None:
    return min(sheet.busy_us / sheet.elapsed_us, 1.0) if sheet.knows_busy and sheet.elapsed_us else None


def _draw(device: Device, books: CardBooks) -> PowerSplit:
    if books.sheet is None:
        return PowerSplit()
    power = value_of(device.readings, "power_watts")
    return PowerSplit(energy_mj=books.moved_mj, energy_us=books.moved_us, power_watts=power)


def _by_account(claims: Iterable[Claim]) -> dict[TenantKey, list[Claim]]:
    found: dict[TenantKey, list[Claim]] = {}
    for claim in claims:
        found.setdefault(TenantKey(claim.gpu, claim.mig, claim.container), []).append(claim)
    return found


def _idle(totals: Totals, books: CardBooks) -> bool | None:
    if totals.entry is None or books.sheet is None:
        return None
    if totals.entry.running:
        return False
    return True if books.sheet.is_watched else None


def _booking(totals: Totals, draw: PowerSplit, *, idle: bool | None) -> Booking:
    entry = totals.entry
    counters = Booking(
        method=totals.method,
        bookable=totals.is_bookable,
        busy_us=totals.busy_us,
        energy_mj=totals.energy_mj,
        allocated_us=totals.allocated_us,
        resident_us=totals.resident_us,
        least_busy_us=totals.least_busy_us,
        most_busy_us=totals.most_busy_us,
        least_energy_mj=totals.least_energy_mj,
        most_energy_mj=totals.most_energy_mj,
    )
    if entry is None:
        return counters
    return replace(
        counters,
        processes=None if idle is None else entry.running,
        memory_bytes=entry.memory_bytes,
        memory_limit_bytes=entry.memory_limit_bytes,
        sm_ratio=entry.sm_ratio,
        instance_ratio=entry.instance_ratio,
        power_watts=draw.watts(totals.moved_mj),
        allocated_ratio=entry.share,
        band=totals.band,
        sampling=entry.sampling,
        last_active_at=totals.last_active_at,
    )


def _rests(books: CardBooks, draw: PowerSplit) -> Iterator[Rest]:
    """Energy that was booked to nobody who is still there is unknown: it may belong to a party that has ended."""
    known = [totals.moved_mj or 0 for totals in (*books.tenants.values(), *books.rest.values())]
    lost_mj = (books.moved_mj or 0) - sum(known)
    for reason, totals in sorted(books.rest.items()):
        drawn_mj = (totals.moved_mj or 0) + (lost_mj if reason == "unknown" else 0)
        yield _rest(reason, totals, draw.watts(drawn_mj or None))


def _rest(reason: str, totals: Totals, power_watts: float | None) -> Rest:
    entry = totals.entry
    return Rest(
        reason=reason,
        memory_bytes=entry.memory_bytes if entry else None,
        sm_ratio=entry.sm_ratio or None if entry else None,
        power_watts=power_watts,
        busy_us=totals.busy_us,
        energy_mj=totals.energy_mj,
        resident_us=totals.resident_us,
        band=totals.band,
        processes=_largest_first(entry.processes) if entry else (),
    )


def _largest_first(processes: list[Process]) -> tuple[Process, ...]:
    if len(processes) < 2:
        return tuple(processes)
    return tuple(sorted(processes, key=lambda process: (-(process.memory_bytes or 0), process.pid)))
