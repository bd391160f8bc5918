"""Who is on a device and what they were measured to use."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from msgspec import Struct, field

from podgpu.ledger.account import Account, Party
from podgpu.ledger.mps import CLIENT
from podgpu.model import Device, Holder, Process

T = TypeVar("T", int, float)


class Usage(Struct, kw_only=True):
    """What one party's processes add up to. None is what could not be measured for all of them.

    `is_client` tells that some are clients of an MPS server, whose time is the server's alone.
    """

    processes: int = 0
    memory_bytes: int | None = 0
    sm_us: int | None = 0
    sm_ratio: float | None = 0.0
    migs: set[str] = field(default_factory=set)
    is_client: bool = False


def party_of(process: Process, device: Device, holder: Holder | None) -> Party:
    """Whose a process is: a named container's, or nobody's for a reason."""
    if holder is None:
        return "unknown"
    if holder.container is None:
        return "unknown" if holder.kind == "pod" else holder.kind
    return Account(device.gpu.uuid, _instance(process, device), holder.container)


def usages(
    device: Device, holders: Mapping[int, Holder], elapsed_us: int, servers: Collection[int] = ()
) -> dict[Party, Usage]:
    """Add up what each party's processes use. A server's memory is nobody's, its time is for `served`."""
    found: dict[Party, Usage] = defaultdict(Usage)
    # By PID, so that sums of ratios do not depend on the order of the list.
    for process in sorted(device.processes, key=lambda one: one.pid):
        if process.pid in servers:
            continue
        usage = found[party_of(process, device, holders.get(process.pid))]
        usage.processes += bool(process.kinds)
        usage.migs.add(_instance(process, device))
        if process.kinds:
            usage.memory_bytes = _added(usage.memory_bytes, process.memory_bytes)
        usage.sm_us = _added(usage.sm_us, _sm_us(process, elapsed_us))
        usage.is_client |= bool(servers) and CLIENT in process.kinds
        usage.sm_ratio = None if usage.is_client else _added(usage.sm_ratio, process.sm_ratio)
    return dict(found)


def served(device: Device, elapsed_us: int, servers: Collection[int]) -> int | None:
    """Return the time that the servers' clients had together, None where the driver did not tell."""
    time: int | None = 0
    for process in device.processes:
        if process.pid in servers:
            time = _added(time, _sm_us(process, elapsed_us))
    return time


def measured(usages: Iterable[Usage]) -> bool:
    return all(usage.sm_us is not None for usage in usages)


def _sm_us(process: Process, elapsed_us: int) -> int | None:
    """The driver's sampled time, never more than there was; a source may tell the ratio alone."""
    if process.sm_busy_us is not None:
        return min(process.sm_busy_us, elapsed_us)
    return None if process.sm_ratio is None else round(process.sm_ratio * elapsed_us)


def _added(one: T | None, other: T | None) -> T | None:
    return None if one is None or other is None else one + other


def _instance(process: Process, device: Device) -> str:
    for instance in device.instances:
        mig = instance.mig
        if (mig.gpu_instance_id, mig.compute_instance_id) == (
            process.gpu_instance_id,
            process.compute_instance_id,
        ):
            return mig.uuid
    return ""
