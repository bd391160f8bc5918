"""Who is on a card: containers with their numbers and processes, and what belongs to no container."""

from collections.abc import Iterable

from msgspec import Struct

from podgpu.model import (
    ENDED,
    UNATTRIBUTED,
    Allocation,
    Booking,
    Claim,
    ContainerRef,
    Device,
    Holder,
    Process,
    Remainder,
    Snapshot,
    Workload,
)
from podgpu.views.text import line

REASONS = {
    "idle": "idle",
    "overhead": "overhead",
    "host": "host processes",
    "container": "other containers",
    "unknown": "unknown",
    ENDED: "ended pods",
}
MEANINGS = {
    "idle": "power of a card, or a part of it, that nobody was given",
    "overhead": "memory of the driver, of MPS servers and of no process",
    "host": "processes outside any container",
    "container": "containers outside Kubernetes",
    "unknown": "whose it is could not be found out",
    ENDED: "what pods used that have ended",
}


class Tenant(Struct, frozen=True, kw_only=True):
    """A container on a card or on one of its instances. `idle` is one that surely has no process there."""

    booking: Booking
    workload: Workload | None = None
    claims: tuple[Claim, ...] = ()
    processes: tuple[Process, ...] = ()
    idle: bool = False


class Rest(Struct, frozen=True, kw_only=True):
    """What is booked to no container for one reason, and the processes it comes from."""

    remainder: Remainder
    processes: tuple[Process, ...] = ()

    @property
    def present(self) -> bool:
        """Whether it is on the card now; its counters alone are history."""
        return bool(self.remainder.memory_bytes or self.processes or self.remainder.processes)


class Tenancy(Struct, frozen=True, kw_only=True):
    tenants: tuple[Tenant, ...] = ()
    rest: tuple[Rest, ...] = ()


def tenancy(snapshot: Snapshot, device: Device) -> Tenancy:
    """Tell who is on the card now, largest memory first. Pods that have ended are history."""
    holders = {holder.pid: holder for holder in snapshot.holders}
    live = [one for one in snapshot.bookings if one.gpu == device.gpu.uuid and not one.ended]
    tenants = [_tenant(snapshot, device, booking, holders) for booking in live]
    named = {process.pid for tenant in tenants for process in tenant.processes}
    others = [process for process in _running(device) if process.pid not in named]
    return Tenancy(tenants=tuple(sorted(tenants, key=_rank)), rest=_rest(snapshot, device, others, holders))


def processes_visible(snapshot: Snapshot) -> bool:
    """Whether the agent can tell whose a process is. If not, that none is seen means nothing."""
    return any(part.up for part in snapshot.parts if part.name == "procfs")


def full_name(container: ContainerRef | Allocation) -> str:
    """`namespace/pod/container`; who is outside Kubernetes has the last alone, a nameless container none."""
    return "/".join(line(part) for part in (container.namespace, container.pod, container.container) if part)


def instance_of(device: Device, process: Process) -> str:
    """UUID of the MIG instance the process is on; empty when it is on none that is known."""
    for instance in device.instances:
        mig = instance.mig
        if process.gpu_instance_id == mig.gpu_instance_id and process.compute_instance_id in (
            None,
            mig.compute_instance_id,
        ):
            return mig.uuid
    return ""


def pids(processes: Iterable[Process], most: int) -> str:
    """Write `424, 425 +3 more`."""
    numbers = [str(process.pid) for process in processes]
    more = f" +{len(numbers) - most} more" if len(numbers) > most else ""
    return ", ".join(numbers[:most]) + more


def _tenant(snapshot: Snapshot, device: Device, booking: Booking, holders: dict[int, Holder]) -> Tenant:
    container = booking.container
    processes = [
        process
        for process in _running(device)
        if instance_of(device, process) == booking.mig
        and (holder := holders.get(process.pid)) is not None
        and holder.container == container
    ]
    place = (booking.gpu, booking.mig, container)
    return Tenant(
        booking=booking,
        workload=snapshot.workloads.get(container.pod_uid),
        claims=tuple(one for one in snapshot.claims if (one.gpu, one.mig, one.container) == place),
        processes=_sorted(processes),
        idle=not booking.processes and processes_visible(snapshot),
    )


def _running(device: Device) -> list[Process]:
    return [process for process in device.processes if process.kinds]


def _rest(
    snapshot: Snapshot, device: Device, others: list[Process], holders: dict[int, Holder]
) -> tuple[Rest, ...]:
    remainders = {one.reason: one for one in snapshot.remainders if one.gpu == device.gpu.uuid}
    by_reason: dict[str, list[Process]] = {}
    for process in others:
        by_reason.setdefault(_reason(holders.get(process.pid)), []).append(process)
    reasons = dict.fromkeys([*UNATTRIBUTED, *remainders])
    return tuple(
        Rest(
            remainder=remainders.get(reason, Remainder(gpu=device.gpu.uuid, reason=reason)),
            processes=_sorted(by_reason.get(reason, ())),
        )
        for reason in reasons
        if reason in remainders or reason in by_reason
    )


def _reason(holder: Holder | None) -> str:
    if holder is not None and holder.serves:
        return "overhead"
    return holder.kind if holder is not None and holder.kind in ("host", "container") else "unknown"


def _sorted(processes: Iterable[Process]) -> tuple[Process, ...]:
    return tuple(sorted(processes, key=lambda process: (-(process.memory_bytes or 0), process.pid)))


def _rank(tenant: Tenant) -> tuple[int, float, ContainerRef]:
    booking = tenant.booking
    return -(booking.memory_bytes or 0), -(booking.sm_ratio or 0.0), booking.container
