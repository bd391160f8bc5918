"""The one immutable object between computing and presenting."""

from msgspec import Struct

from podgpu.model.device import Device, Fault, Gpu
from podgpu.model.ledger import Balance, Booking, Claim, Remainder
from podgpu.model.pod import Allocation, Holder, Pod, Workload
from podgpu.model.virtual import VirtualGpu

SCHEMA = 1


class PartStatus(Struct, frozen=True, kw_only=True):
    """The state of one part the agent depends on. `age_seconds` is None until it worked once."""

    name: str
    up: bool
    fault: Fault | None = None
    duration_seconds: float = 0.0
    age_seconds: float | None = None


class ErrorCount(Struct, frozen=True, kw_only=True):
    source: str
    reason: str
    count: int


class SharingStatus(Struct, frozen=True, kw_only=True):
    """A way to share GPUs that there is a sign of on this node. `missing` says what it takes to book by it.

    `doubts` say what cannot be known of its claims, and what would settle it; None, if there are none.
    """

    system: str
    claims: int = 0
    missing: str = ""
    doubts: tuple[str, ...] | None = None


class Snapshot(Struct, frozen=True, kw_only=True):
    """Everything a view may show. `demo` is true when the numbers are made up.

    `pods` are those with a claim or a process on a GPU, `workloads` goes by pod UID, `unclaimed` are device ids
    that no sharing system understood, `sharing` the systems that were found.
    """

    node: str
    taken_at: float
    interval_seconds: float
    version: str
    demo: bool = False
    driver_version: str = ""
    nvml_version: str = ""
    devices: tuple[Device, ...] = ()
    claims: tuple[Claim, ...] = ()
    holders: tuple[Holder, ...] = ()
    bookings: tuple[Booking, ...] = ()
    remainders: tuple[Remainder, ...] = ()
    balances: tuple[Balance, ...] = ()
    pods: tuple[Pod, ...] = ()
    workloads: dict[str, Workload] = {}
    unclaimed: tuple[Allocation, ...] = ()
    sharing: tuple[SharingStatus, ...] = ()
    vgpus: tuple[VirtualGpu, ...] = ()
    parts: tuple[PartStatus, ...] = ()
    errors: tuple[ErrorCount, ...] = ()

    def node_of(self, gpu: Gpu) -> str:
        return gpu.node or self.node

    @property
    def up(self) -> bool:
        """Whether every part works and every GPU answers."""
        return all(part.up for part in self.parts) and all(device.fault is None for device in self.devices)
