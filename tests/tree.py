"""Cards of a snapshot, written out for tests."""

from collections.abc import Sequence

from msgspec.structs import replace

from podgpu.agent.join import unattributed
from podgpu.insight import InsightSettings, conclude
from podgpu.model import SEES_ALL, Balance, Booking, Card, Device, Holder, Process, Rest, Snapshot, Tenant

# Every process is listed, and the owner of each can be looked up.
WATCHED = replace(SEES_ALL, knows_owners=True)
SETTINGS = InsightSettings(idle_after=1800.0)


def card(
    device: Device,
    *,
    tenants: Sequence[Tenant] = (),
    ended: Sequence[Tenant] = (),
    rest: Sequence[Rest] = (),
    balance: Balance | None = None,
    knows_owners: bool = True,
    counts_busy: bool = True,
    counts_energy: bool = True,
) -> Card:
    """A card with these on it; without a `balance` given, its books balance."""
    ability = replace(device.ability, knows_owners=knows_owners, counts_busy=counts_busy, counts_energy=counts_energy)
    return replace(
        unattributed(device),
        ability=ability,
        tenants=tuple(tenants),
        ended=tuple(ended),
        rest=tuple(rest),
        balance=balance or balanced([tenant.booking for tenant in (*tenants, *ended)], rest),
    )


def balanced(bookings: Sequence[Booking], rest: Sequence[Rest]) -> Balance:
    lines: list[Booking | Rest] = [*bookings, *rest]
    return Balance(
        memory_bytes=sum(line.memory_bytes or 0 for line in lines),
        busy_us=sum(line.busy_us for line in lines),
        energy_mj=sum(line.energy_mj for line in lines),
    )


def held(process: Process, holder: Holder | None, mig: str = "") -> Process:
    """A process as the join leaves it."""
    return replace(process, holder=holder, mig=mig)


def judged(snapshot: Snapshot) -> Snapshot:
    """The snapshot with what follows from it, whatever it said before it was changed for a test."""
    return conclude(snapshot, SETTINGS)
