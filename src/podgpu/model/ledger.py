"""The books: who holds which share of which GPU, and what was booked to whom."""

from msgspec import Struct

from podgpu.model.pod import ContainerRef

# Why something is booked to no container. `idle`: energy of capacity that nobody reserved. `overhead`: memory in use
# that no process accounts for. `host`, `container`: processes outside Kubernetes. `unknown`: nobody can say.
UNATTRIBUTED = ("idle", "overhead", "host", "container", "unknown")
# Booked to containers that have ended and are no longer shown one by one.
ENDED = "ended"


class Claim(Struct, frozen=True, kw_only=True):
    """A container's right to a GPU, or to one of its MIG instances.

    `share` is its part of what it names, 0 to 1. `system` is the sharing system that said so, `device_id` the id it
    was read from.
    """

    gpu: str
    container: ContainerRef
    mig: str = ""
    share: float = 1.0
    memory_limit_bytes: int | None = None
    core_limit_ratio: float | None = None
    resource: str = ""
    device_id: str = ""
    system: str = ""
    source: str = ""


class Booking(Struct, frozen=True, kw_only=True):
    """What one container has of one device. Counters are totals over the agent's life, in integers.

    Ratios and seconds are parts of the whole card, also on a MIG instance; `sm_ratio` alone is the instance's own.

    `memory_bytes` and `sm_ratio` are None where they cannot be measured. `method` says how busy time and active energy
    were found: measured, exclusive, instance, weighted, reserved, equal.
    """

    gpu: str
    container: ContainerRef
    mig: str = ""
    method: str = ""
    processes: int = 0
    memory_bytes: int | None = None
    memory_limit_bytes: int | None = None
    sm_ratio: float | None = None
    power_watts: float | None = None
    allocated_ratio: float | None = None
    busy_us: int = 0
    energy_mj: int = 0
    allocated_us: int = 0
    last_active_at: float | None = None
    ended: bool = False


class Remainder(Struct, frozen=True, kw_only=True):
    """What of one device is booked to no container, by reason. With the bookings it makes up the device exactly."""

    gpu: str
    reason: str
    memory_bytes: int | None = None
    busy_us: int = 0
    energy_mj: int = 0
    processes: int = 0


class Balance(Struct, frozen=True, kw_only=True):
    """What the books of one device add up to."""

    gpu: str
    memory_bytes: int | None = None
    busy_us: int = 0
    energy_mj: int = 0
