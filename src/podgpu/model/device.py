"""What a GPU is, and what one reading of it found.

`None` means the hardware did not say. Nothing here is ever filled with a zero.
"""

from msgspec import Struct


class Gpu(Struct, frozen=True, kw_only=True):
    """Who a card is: facts that hold until the driver is loaded again or MIG is switched.

    `node` is where it is, if that is not the snapshot's own node.
    """

    uuid: str
    index: int
    minor: int | None = None
    model: str = ""
    pci_bus_id: str = ""
    architecture: str = ""
    compute_capability: str = ""
    vbios: str = ""
    mig_enabled: bool = False
    multiprocessors: int | None = None
    node: str = ""


class MigInstance(Struct, frozen=True, kw_only=True):
    """One MIG device: a compute instance within a GPU instance. `start` is the first memory slice it lies on."""

    uuid: str
    gpu_instance_id: int
    compute_instance_id: int
    profile: str = ""
    multiprocessors: int | None = None
    start: int | None = None


class Reading(Struct, frozen=True, array_like=True):
    """One value in base units. `metric` names a catalog row, `labels` are the values of its own labels."""

    metric: str
    value: float
    labels: tuple[str, ...] = ()


class Process(Struct, frozen=True, kw_only=True):
    """A process on the card. The ratios are means over the time since the previous reading.

    A process without kinds has ended: it is no longer listed, but worked since the previous reading. `sm_busy_us` is
    the time it had the multiprocessors for, as far as the driver sampled it.
    """

    pid: int
    kinds: tuple[str, ...] = ()
    memory_bytes: int | None = None
    sm_busy_us: int | None = None
    gpu_instance_id: int | None = None
    compute_instance_id: int | None = None
    sm_ratio: float | None = None
    memory_ratio: float | None = None
    encoder_ratio: float | None = None
    decoder_ratio: float | None = None


class Fault(Struct, frozen=True, kw_only=True):
    """Why something gave no data. `reason` is one of a closed set, `call` the library call at fault."""

    reason: str
    call: str = ""
    detail: str = ""
    seconds: float = 0.0


class Instance(Struct, frozen=True, kw_only=True):
    mig: MigInstance
    readings: tuple[Reading, ...] = ()


class Device(Struct, frozen=True, kw_only=True):
    """One reading of one card. With a fault the card said nothing: missing is absent, never stale.

    `at` is the monotonic time of the reading, comparable between processes of one machine. `processes_known` is false
    when a list of processes could not be read: then others than those listed may be there.
    """

    gpu: Gpu
    at: float = 0.0
    fault: Fault | None = None
    readings: tuple[Reading, ...] = ()
    instances: tuple[Instance, ...] = ()
    processes: tuple[Process, ...] = ()
    processes_known: bool = True
    seconds: float = 0.0
