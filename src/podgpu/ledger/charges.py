"""Memory that the kernel charges to containers, compared with what the driver lists for their processes."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from podgpu.ledger.usage import added
from podgpu.model import Charge, ContainerRef, Device, Holder

READINGS = 3  # that must show a difference: memory is taken and freed between the driver's list and the kernel's


class ListedMemory(Struct, kw_only=True):
    """The memory of processes on a card by container. None is what was not measured.

    `stray_bytes` may be anybody's: the containers of these processes are not known, or the list is not complete.
    """

    containers: dict[ContainerRef, int | None] = field(default_factory=dict)
    stray_bytes: int | None = 0


def listed_memory(device: Device, holders: Mapping[int, Holder]) -> ListedMemory:
    found = ListedMemory()
    if not (device.ability.sees_all and device.ability.knows_owners):
        found.stray_bytes = None
    for process in device.processes:
        holder = holders.get(process.pid)
        if not process.kinds:
            continue
        if holder is not None and holder.container is not None:
            so_far = found.containers.get(holder.container, 0)
            found.containers[holder.container] = added(so_far, process.memory_bytes)
        elif holder is None or holder.kind in ("pod", "unknown"):
            found.stray_bytes = added(found.stray_bytes, process.memory_bytes)
    return found


def compared(container: ContainerRef, charged_bytes: int, listed: ListedMemory) -> Charge:
    """Compare one reading of both. Without processes a container has 0 bytes, if all processes are known."""
    stray = listed.stray_bytes
    own = listed.containers.get(container, None if stray is None else 0)
    unexplained = 0 if own is None or stray is None else max(0, charged_bytes - own - stray)
    return Charge(
        container=container,
        charged_bytes=charged_bytes,
        listed_bytes=own,
        unexplained_bytes=unexplained or None,
        elsewhere_bytes=max(0, (own or 0) - charged_bytes) or None,
    )


def lasting(readings: Sequence[Charge]) -> Charge:
    """Return the newest reading with the difference that all of them show, if they are enough."""
    newest, is_enough = readings[-1], len(readings) >= READINGS
    unexplained = min(reading.unexplained_bytes or 0 for reading in readings)
    elsewhere = min(reading.elsewhere_bytes or 0 for reading in readings)
    return replace(
        newest,
        unexplained_bytes=(unexplained or None) if is_enough else None,
        elsewhere_bytes=(elsewhere or None) if is_enough else None,
    )
