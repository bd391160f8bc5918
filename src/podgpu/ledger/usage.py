"""Who is on a device and what they were measured to use."""

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from podgpu.ledger.cycle import Party, TenantKey
from podgpu.ledger.mps import CLIENT
from podgpu.model import Device, Holder, Process


class Usage(Struct, kw_only=True, gc=False):
    """What one party's processes add up to. None is what could not be measured for all of them.

    `is_client` says that some are clients of an MPS server, which has all of their time.
    """

    processes: list[Process] = field(default_factory=list)
    running: int = 0
    memory_bytes: int | None = 0
    sm_us: int | None = 0
    migs: set[str] = field(default_factory=set)
    is_client: bool = False


def party_of(device: Device, mig: str, holder: Holder | None) -> Party:
    """Whose a process is: a named container's, or nobody's for a reason."""
    if holder is None:
        return "unknown"
    if holder.container is None:
        return "unknown" if holder.kind == "pod" else holder.kind
    return TenantKey(device.gpu.uuid, mig, holder.container)


def usages(
    device: Device, holders: Mapping[int, Holder], elapsed_us: int, servers: Collection[int] = ()
) -> dict[Party, Usage]:
    """Add up what each party's processes use. A server's memory is nobody's; its time is what `served` returns."""
    found: dict[Party, Usage] = {}
    # By PID, so that sums of ratios do not depend on the order of the list.
    for process in sorted(device.processes, key=lambda one: one.pid):
        if process.pid not in servers:
            mig = device.place(process)
            owned = replace(process, mig=mig, holder=holders.get(process.pid))
            party = party_of(device, mig, owned.holder)
            usage = found.get(party) or found.setdefault(party, Usage())
            usage.migs.add(mig)
            _add(usage, owned, elapsed_us, is_client=bool(servers) and CLIENT in process.kinds)
    return found


def _add(usage: Usage, process: Process, elapsed_us: int, *, is_client: bool) -> None:
    usage.processes.append(process)
    if process.kinds:
        usage.running += 1
        usage.memory_bytes = _added(usage.memory_bytes, process.memory_bytes)
    usage.sm_us = _added(usage.sm_us, _sm_us(process, elapsed_us))
    usage.is_client |= is_client


def serving(device: Device, holders: Mapping[int, Holder], servers: Collection[int]) -> list[Process]:
    """List the servers among the processes."""
    return [
        replace(process, holder=replace(holders[process.pid], serves=True))
        for process in device.processes
        if process.pid in servers
    ]


def served(servers: Iterable[Process], elapsed_us: int) -> int | None:
    """Return the time that the servers' clients had together, None where the driver does not provide it."""
    time: int | None = 0
    for process in servers:
        time = _added(time, _sm_us(process, elapsed_us))
    return time


def is_watched(device: Device, found: Mapping[Party, Usage]) -> bool:
    """Whether every process on the card is listed, and it is known whose each is, or that it is gone."""
    if not (device.ability.sees_all and device.ability.knows_owners):
        return False
    unknown = found.get("unknown")
    return unknown is None or all(_is_gone(process) for process in unknown.processes if process.kinds)


def _is_gone(process: Process) -> bool:
    return process.holder is not None and process.holder.reason == "exited"


def measured(usages: Iterable[Usage]) -> bool:
    return all(usage.sm_us is not None for usage in usages)


def _sm_us(process: Process, elapsed_us: int) -> int | None:
    """The driver's sampled time, never more than there was; a source may report the ratio alone."""
    if process.sm_busy_us is not None:
        return min(process.sm_busy_us, elapsed_us)
    return None if process.sm_ratio is None else round(min(process.sm_ratio, 1.0) * elapsed_us)


def _added(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
