"""What a GPU is, and what one reading of it found.

`None` means that the hardware does not report it. Nothing here is ever filled with a zero.
"""

from msgspec import Struct

from podgpu.model.pod import Holder


class Gpu(Struct, frozen=True, kw_only=True, gc=False):
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


class MigInstance(Struct, frozen=True, kw_only=True, gc=False):
    """One MIG device: a compute instance within a GPU instance. `start` is the first memory slice it lies on."""

    uuid: str
    gpu_instance_id: int
    compute_instance_id: int
    profile: str = ""
    multiprocessors: int | None = None
    start: int | None = None


class Reading(Struct, frozen=True, array_like=True, gc=False):
    """One value in base units. `metric` names a catalog row, `labels` are the values of its own labels."""

    metric: str
    value: float
    labels: tuple[str, ...] = ()


class Ability(Struct, frozen=True, kw_only=True, gc=False):
    """What can be known about a card. A source says what it can do; the join adds what the rest of the agent can.

    `sees_processes`: the source can list the processes on the card. `sees_all`: its list was complete this time.
    `knows_owners`: the owner of each process can be looked up. `hears_xids`: every XID is heard. `counts_busy` and
    `counts_energy`: the card's busy time and energy are measured, so that they can be booked.
    """

    sees_processes: bool = False
    sees_all: bool = False
    knows_owners: bool = False
    hears_xids: bool = False
    counts_busy: bool = False
    counts_energy: bool = False


SEES_ALL = Ability(sees_processes=True, sees_all=True)


class Process(Struct, frozen=True, kw_only=True, gc=False):
    """A process on the card. The ratios are means over the time since the previous reading.

    A process without kinds has ended: it is no longer listed, but worked since the previous reading. `sm_busy_us` is
    the time it had the multiprocessors for, as far as the driver sampled it. Whose it is (`holder`) and the UUID of the
    MIG instance it is on (`mig`) no source knows: the join fills them in.
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
    mig: str = ""
    holder: Holder | None = None


class Fault(Struct, frozen=True, kw_only=True, gc=False):
    """Why something gave no data. `reason` is one of a closed set, `call` the library call at fault."""

    reason: str
    call: str = ""
    detail: str = ""
    seconds: float = 0.0


class Instance(Struct, frozen=True, kw_only=True, gc=False):
    mig: MigInstance
    readings: tuple[Reading, ...] = ()


class Device(Struct, frozen=True, kw_only=True, gc=False):
    """One reading of one card, as a source reports it. With a fault there is nothing else.

    `at` is the monotonic time of the reading, comparable between processes of one machine.
    """

    gpu: Gpu
    at: float = 0.0
    fault: Fault | None = None
    ability: Ability = SEES_ALL
    readings: tuple[Reading, ...] = ()
    instances: tuple[Instance, ...] = ()
    processes: tuple[Process, ...] = ()
    seconds: float = 0.0

    def place(self, process: Process) -> str:
        """UUID of the MIG instance that the process is on; empty if it is on none, or it is not clear on which.

        Some drivers name the GPU instance alone: that will do if it has only one compute instance.
        """
        if process.gpu_instance_id is None:
            return ""
        inside = [one.mig for one in self.instances if one.mig.gpu_instance_id == process.gpu_instance_id]
        wanted = process.compute_instance_id
        fitting = [mig for mig in inside if wanted is None or mig.compute_instance_id == wanted]
        return fitting[0].uuid if len(fitting) == 1 else ""
