"""A card with everybody on it: the join of readings, claims, processes and books, made once per cycle."""

from collections.abc import Iterator

from msgspec import Struct

from podgpu.model.claim import Claim
from podgpu.model.device import Ability, Fault, Gpu, Instance, Process, Reading
from podgpu.model.pod import ContainerRef, Workload
from podgpu.model.virtual import VirtualGpu

# Why something is booked to no container. `idle`: energy of capacity that nobody reserved. `overhead`: memory in use
# that no process accounts for. `host`, `container`: processes outside Kubernetes. `unknown`: nobody can say.
UNATTRIBUTED = ("idle", "overhead", "host", "container", "unknown")
# Booked to containers that ended and are no longer listed.
ENDED = "ended"


class Booking(Struct, frozen=True, kw_only=True, gc=False):
    """What one container has of one card or MIG instance. Counters are totals over the agent's life, in integers.

    `busy_us`, `energy_mj`, `allocated_us` and `allocated_ratio` are parts of the whole card, also on a MIG instance;
    `sm_ratio` is the instance's own there. A gauge that cannot be measured is None. `method` says how busy time and
    active energy were found: measured, exclusive, instance, weighted, reserved, equal.
    """

    method: str = ""
    processes: int | None = None
    memory_bytes: int | None = None
    memory_limit_bytes: int | None = None
    sm_ratio: float | None = None
    power_watts: float | None = None
    allocated_ratio: float | None = None
    busy_us: int = 0
    energy_mj: int = 0
    allocated_us: int = 0
    last_active_at: float | None = None


class Tenant(Struct, frozen=True, kw_only=True, gc=False):
    """A container on a card, or on the MIG instance whose UUID is `mig`: it holds a claim, has processes, or both.

    `processes` includes those that ended since the previous reading; they have no `kinds`. `idle` is true if the
    container certainly has no process there, false if it has one, and None if processes may have been missed.
    `vgpu` is what the sharing library inside the container reports.
    """

    container: ContainerRef
    mig: str = ""
    workload: Workload | None = None
    claims: tuple[Claim, ...] = ()
    processes: tuple[Process, ...] = ()
    booking: Booking = Booking()
    idle: bool | None = None
    vgpu: VirtualGpu | None = None

    @property
    def running(self) -> list[Process]:
        return [process for process in self.processes if process.kinds]


class Rest(Struct, frozen=True, kw_only=True, gc=False):
    """What is booked to no container for one reason, and the processes it comes from."""

    reason: str
    memory_bytes: int | None = None
    busy_us: int = 0
    energy_mj: int = 0
    processes: tuple[Process, ...] = ()

    @property
    def running(self) -> list[Process]:
        return [process for process in self.processes if process.kinds]


class Balance(Struct, frozen=True, kw_only=True, gc=False):
    """What the books of the card add up to: its tenants, those that ended, and the rest."""

    memory_bytes: int | None = None
    busy_us: int = 0
    energy_mj: int = 0


class Card(Struct, frozen=True, kw_only=True, gc=False):
    """One card, read and booked. With a fault there are no readings: missing is absent, never stale.

    `tenants` are there now, by instance and container. `ended` are former tenants whose counters are still shown, so
    that their last increase is scraped. `rest` is booked to no container.
    """

    gpu: Gpu
    at: float = 0.0
    seconds: float = 0.0
    fault: Fault | None = None
    ability: Ability = Ability()
    readings: tuple[Reading, ...] = ()
    instances: tuple[Instance, ...] = ()
    tenants: tuple[Tenant, ...] = ()
    ended: tuple[Tenant, ...] = ()
    rest: tuple[Rest, ...] = ()
    balance: Balance | None = None

    @property
    def processes(self) -> Iterator[Process]:
        """Every process on the card, also those that ended since the previous reading."""
        for tenant in self.tenants:
            yield from tenant.processes
        for rest in self.rest:
            yield from rest.processes
