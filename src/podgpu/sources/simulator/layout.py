"""What a simulated node is made of: cards, the processes on them, and the work those do.

`tenant` is `namespace/pod/container`, or `host:NAME` for a process outside any pod.
"""

from dataclasses import dataclass
from uuid import NAMESPACE_OID, uuid5


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Windows of `every` seconds: up to `busy` for about the `duty` part of each, then `rest`.

    `spread` is how much windows differ from one another, 0 to 1. `every` divides the length of a round.
    """

    busy: float
    every: int = 300
    duty: float = 1.0
    rest: float = 0.0
    spread: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a kernel mix does to a whole card in one fully busy second: ratios, watts and bytes."""

    watts: int
    occupancy: float
    dram: float
    tensor: float = 0.0
    fp64: float = 0.0
    fp32: float = 0.0
    fp16: float = 0.0
    integer: float = 0.0
    decoder: float = 0.0
    pcie_transmit: int = 0
    pcie_receive: int = 0
    nvlink: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedProcess:
    """A process on a card. It holds `memory_bytes` and slowly takes and gives back up to `swing_bytes` more.

    `instance` is the id of the GPU instance it runs in.
    """

    pid: int
    tenant: str
    memory_bytes: int
    swing_bytes: int = 0
    work: Work
    rhythm: Rhythm
    kinds: tuple[str, ...] = ("compute",)
    instance: int | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    multiprocessors: int
    memory_bytes: int
    decoders: int


@dataclass(frozen=True, slots=True)
class SimulatedSlice:
    """A MIG device: one GPU instance with one compute instance over all of it."""

    gpu_instance_id: int
    profile: Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedCard:
    """`xid_at` are the seconds of each round at which the driver raises XID 31.

    `warmth` is by how many degrees the air that cools it is too warm. `logs_switches` says that the driver's log of
    context switches is read.
    """

    index: int
    processes: tuple[SimulatedProcess, ...]
    slices: tuple[SimulatedSlice, ...] = ()
    corrected_errors: int = 0
    xid_at: tuple[int, ...] = ()
    warmth: int = 0
    logs_switches: bool = False

    @property
    def uuid(self) -> str:
        return f"GPU-{uuid5(NAMESPACE_OID, f'podgpu demo card {self.index}')}"

    @property
    def pci_bus_id(self) -> str:
        return f"00000000:{0x18 + 0x11 * self.index:02X}:00.0"

    def slice_uuid(self, gpu_instance_id: int) -> str:
        return f"MIG-{uuid5(NAMESPACE_OID, f'podgpu demo card {self.index} instance {gpu_instance_id}')}"
