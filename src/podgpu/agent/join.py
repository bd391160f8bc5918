"""The join: a card's reading, its sheet of this cycle and its books over time become one Card.

"Who is on this card" is answered here, once. Whatever comes after walks the answer.
"""

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from podgpu.agent.accounts import CardBooks, Totals
from podgpu.ledger.account import Account
from podgpu.model import (
    Ability,
    Balance,
    Booking,
    Card,
    Claim,
    ContainerRef,
    Device,
    Process,
    Rest,
    Tenant,
    VirtualGpu,
    Workload,
)

ENERGY = "energy_joules_total"
ACTIVITY = frozenset({"utilization_ratio", "graphics_engine_active_ratio"})

WorkloadOf = Callable[[ContainerRef], Workload | None]


def bare(device: Device) -> Card:
    """A card that nobody is booked on: whose its processes are is unknown."""
    processes = [replace(process, mig=device.place(process)) for process in device.processes]
    return Card(
        gpu=device.gpu,
        at=device.at,
        seconds=device.seconds,
        fault=device.fault,
        ability=device.ability,
        readings=device.readings,
        instances=device.instances,
        rest=(Rest(reason="unknown", processes=_largest_first(processes)),) if processes else (),
    )


class Join:
    """What the join of all cards of a cycle has in common."""

    def __init__(self, vgpus: Iterable[VirtualGpu], workload_of: WorkloadOf) -> None:
        self._vgpus = {(one.gpu, one.pod_uid, one.container): one for one in vgpus}
        self._workload_of = workload_of

    def card(self, device: Device, books: CardBooks | None, claims: Iterable[Claim]) -> Card:
        """`claims` are those on this card: if it is silent, or not booked, nothing else says who is there."""
        balance = _balance(books) if books else None
        if books is None or device.fault is not None:
            held = _by_account(claims)
        else:
            held = {account: totals.entry.claims for account, totals in books.tenants.items() if totals.entry}
        books = books or CardBooks()
        accounts = sorted({*books.tenants, *held})
        return Card(
            gpu=device.gpu,
            at=device.at,
            seconds=device.seconds,
            fault=device.fault,
            ability=_ability(device, balance),
            readings=device.readings,
            instances=device.instances,
            tenants=tuple(self._tenant(one, books, held[one]) for one in accounts if one in held),
            ended=tuple(self._tenant(one, books, ()) for one in accounts if one not in held),
            rest=tuple(_rest(reason, totals) for reason, totals in sorted(books.rest.items())),
            balance=balance,
        )

    def _tenant(self, account: Account, books: CardBooks, claims: Iterable[Claim]) -> Tenant:
        totals = books.tenants.get(account, _NOTHING)
        idle = _idle(totals, books)
        return Tenant(
            container=account.container,
            mig=account.mig,
            workload=self._workload_of(account.container),
            claims=tuple(claims),
            processes=_largest_first(totals.entry.processes) if totals.entry else (),
            booking=_booking(totals, idle=idle),
            idle=idle,
            vgpu=self._vgpu(account),
        )

    def _vgpu(self, account: Account) -> VirtualGpu | None:
        """A tenant can write any card into its library's file: it counts where the container is a tenant."""
        if account.mig or not account.container.pod_uid or not self._vgpus:
            return None
        return self._vgpus.get((account.gpu, account.container.pod_uid, account.container.container))


_NOTHING = Totals()


def _ability(device: Device, balance: Balance | None) -> Ability:
    """A card without an energy counter has no energy to book: that is unknown, not 0. The same goes for busy time."""
    metrics = {one.metric for one in device.readings}
    activity = metrics
    if device.instances:
        activity = {one.metric for instance in device.instances for one in instance.readings}
    return replace(
        device.ability,
        counts_energy=bool(balance and balance.energy_mj) or ENERGY in metrics,
        counts_busy=bool(balance and balance.busy_us) or not ACTIVITY.isdisjoint(activity),
    )


def _balance(books: CardBooks) -> Balance:
    return Balance(
        memory_bytes=books.sheet.memory_bytes if books.sheet else None,
        busy_us=books.whole.busy_us,
        energy_mj=books.whole.energy_mj,
    )


def _by_account(claims: Iterable[Claim]) -> dict[Account, list[Claim]]:
    found: dict[Account, list[Claim]] = {}
    for claim in claims:
        found.setdefault(Account(claim.gpu, claim.mig, claim.container), []).append(claim)
    return found


def _idle(totals: Totals, books: CardBooks) -> bool | None:
    if totals.entry is None or books.sheet is None:
        return None
    if totals.entry.running:
        return False
    return True if books.sheet.is_watched else None


def _booking(totals: Totals, *, idle: bool | None) -> Booking:
    entry = totals.entry
    counters = Booking(
        method=totals.method,
        busy_us=totals.busy_us,
        energy_mj=totals.energy_mj,
        allocated_us=totals.allocated_us,
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
        power_watts=totals.power_watts,
        allocated_ratio=entry.share,
        band=totals.band,
        last_active_at=totals.last_active_at,
    )


def _rest(reason: str, totals: Totals) -> Rest:
    entry = totals.entry
    return Rest(
        reason=reason,
        memory_bytes=entry.memory_bytes if entry else None,
        busy_us=totals.busy_us,
        energy_mj=totals.energy_mj,
        processes=_largest_first(entry.processes) if entry else (),
    )


def _largest_first(processes: list[Process]) -> tuple[Process, ...]:
    if len(processes) < 2:
        return tuple(processes)
    return tuple(sorted(processes, key=lambda process: (-(process.memory_bytes or 0), process.pid)))
