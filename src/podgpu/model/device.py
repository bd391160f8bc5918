"""What a GPU is, and what one reading of it found.

`None` means that the hardware does not report it. Nothing here is ever filled with a zero.
"""

from collections.abc import Iterable

from msgspec import Struct

from podgpu.model.pod import Holder

UNKNOWN = -1  # a number that is not reported
HIDDEN_PID = 0  # a process of another user, which the agent may not see
ENDED_PID = -1  # a process that had ended before the driver could look it up


class Gpu(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What a card is: facts that hold until the driver is loaded again or MIG is switched."""

    uuid: str  # `GPU-…`; empty if not known, as with cards that only Kubernetes reports
    index: int  # the driver's number for it; -1 if not known
    minor: int | None = None  # N of `/dev/nvidiaN`; absent if not known
    model: str = ""  # such as `NVIDIA H200`
    pci_bus_id: str = ""  # domain:bus:device.function
    architecture: str = ""  # such as `Hopper`
    compute_capability: str = ""  # such as `9.0`
    vbios: str = ""  # version of the card's firmware
    brand: str | None = None  # such as `Tesla`; absent if not known
    serial: str | None = None  # number of the board; absent if not known
    inforom_image: str | None = None  # version of the whole InfoROM; absent if not known
    inforom_oem: str | None = None  # version of its OEM object; absent if not known
    inforom_ecc: str | None = None  # version of its ECC object; absent if not known
    inforom_power: str | None = None  # version of its power object; absent if not known
    mig_enabled: bool = False  # whether it is in MIG mode
    multiprocessors: int | None = None  # how many it has; absent if not known
    sampled_by: str | None = None  # NVML's call that names its busy processes; absent until one has

    @property
    def number(self) -> str:
        """The index as people read it."""
        return "?" if self.index == UNKNOWN else str(self.index)


class GuestCard(Struct, frozen=True, kw_only=True, gc=False):
    """A card that is given to virtual machines. The driver here does not list it, so nothing of it is measured."""

    pci_bus_id: str  # domain:bus:device.function, as NVML writes it
    model: str = ""  # such as `NVIDIA H200`, by its PCI id; empty if not known
    driver: str  # the kernel's driver that has it, such as `vfio-pci`


class MigInstance(Struct, frozen=True, kw_only=True, gc=False):
    """One MIG device: a compute instance within a GPU instance."""

    uuid: str  # `MIG-…`; if that is not known, the name that its driver or plugin has for it
    gpu_instance_id: int  # the driver's number for the GPU instance; -1 if not known
    compute_instance_id: int  # the driver's number for the compute instance in it; -1 if not known
    profile: str = ""  # such as `3g.71gb`
    multiprocessors: int | None = None  # how many it has; absent if not known
    start: int | None = None  # the first memory slice it lies on; absent if not known


class Reading(Struct, frozen=True, array_like=True, gc=False):
    """One value of a card or instance."""

    metric: str  # name of a row in metrics.md, without `podgpu_gpu_`
    value: float  # in the base unit that the name ends in
    labels: tuple[str, ...] = ()  # in the document a map from label to value; absent without labels


def value_of(readings: Iterable[Reading], metric: str) -> float | None:
    """Return the first reading of that name, None if there is none."""
    for reading in readings:
        if reading.metric == metric:
            return reading.value
    return None


class Ability(Struct, frozen=True, kw_only=True, gc=False):
    """What can be known about a card. A source says what it can do; the join adds what the rest of the agent can."""

    sees_processes: bool = False  # the source can list the processes on the card
    sees_all: bool = False  # its list was complete this time
    knows_owners: bool = False  # the owner of each process can be looked up
    hears_xids: bool = False  # no XID is missed
    counts_busy: bool = False  # busy time is measured, so that it can be booked
    counts_energy: bool = False  # energy is measured, so that it can be booked


SEES_ALL = Ability(sees_processes=True, sees_all=True)


class Process(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A process on the card, also one that worked since the previous reading and has ended.

    A source does not know its owner, or the UUID of its instance: the join fills them in.
    """

    pid: int  # in the node's PID namespace
    kinds: tuple[str, ...] = ()  # of `compute`, `graphics`, `mps`; empty if it has just ended
    memory_bytes: int | None = None  # absent if not measured
    sm_busy_us: int | None = None  # microseconds on the multiprocessors, sampled; absent if not measured
    gpu_instance_id: int | None = None  # absent without MIG
    compute_instance_id: int | None = None  # absent without MIG, or if the driver does not provide it
    sm_ratio: float | None = None  # 0 to 1, mean since the previous reading; absent if not measured
    memory_ratio: float | None = None  # 0 to 1, time with memory traffic; absent if not measured
    encoder_ratio: float | None = None  # 0 to 1; absent if not measured
    decoder_ratio: float | None = None  # 0 to 1; absent if not measured
    mig: str = ""  # UUID of the MIG instance it is on; empty if on none, or not clear
    holder: Holder | None = None  # its owner; absent if it was not looked up


class Fault(Struct, frozen=True, kw_only=True, gc=False):
    """Why something gave no data. The reasons are a closed set."""

    reason: str  # one of those in operations.md
    call: str = ""  # the call at fault; empty if none was
    detail: str = ""  # what the source said
    seconds: float = 0.0  # for how long; 0 if not known


class Refused(Struct, frozen=True, kw_only=True, gc=False):
    """A call that the card refuses though it answered before, or though every card should answer it."""

    call: str  # NVML's name, without `nvmlDeviceGet`
    reason: str  # mostly `not_supported` or `no_permission`


class Instance(Struct, frozen=True, kw_only=True, gc=False):
    """A MIG instance, read."""

    mig: MigInstance  # what instance it is
    readings: tuple[Reading, ...] = ()  # values of the instance, in base units


class Slice(Struct, frozen=True, array_like=True, gc=False):
    """A time in which a process's context was on the card. By the node's clock, like all that follows."""

    pid: int
    begin_ns: int
    end_ns: int


class BusyWindow(Struct, frozen=True, array_like=True, gc=False):
    """How long the card was busy in a stretch of time, whatever process caused it."""

    begin_ns: int
    end_ns: int
    busy_ns: int


class Span(Struct, frozen=True, array_like=True, gc=False):
    begin_ns: int
    end_ns: int


class SwitchLog(Struct, frozen=True, kw_only=True, gc=False):
    """The log of one card since the previous reading: complete from `begin_ns` to `end_ns`, except for `lost`.

    `slices` follow each other; a context that is still on the card at the end has a slice up to there. `switching_ns`
    is the time between one context and the next.
    """

    begin_ns: int
    end_ns: int
    slices: tuple[Slice, ...] = ()
    lost: tuple[Span, ...] = ()
    switches: int = 0
    switching_ns: int = 0


class SpotLog(Struct, frozen=True, kw_only=True, gc=False):
    """A short reading of a card's log at a random moment.

    Without slices nothing was switched: one context was on the card throughout. `stands_for` is the time in seconds
    from which the moment was drawn.
    """

    stands_for: float
    slices: tuple[Slice, ...] = ()
    is_incomplete: bool = False  # records were lost, or a clock was set


class Device(Struct, frozen=True, kw_only=True, gc=False):
    """One reading of one card, as a source reports it. With a fault there is nothing else.

    `at` is the monotonic time of the reading, comparable between processes of one machine. `windows` are stretches of
    the time since the previous reading, each with its busy time, where they were asked for. `log` is the log of
    context switches, where the source has one itself, and `checks` are its readings at random moments.
    """

    gpu: Gpu
    at: float = 0.0
    fault: Fault | None = None
    ability: Ability = SEES_ALL
    readings: tuple[Reading, ...] = ()
    instances: tuple[Instance, ...] = ()
    processes: tuple[Process, ...] = ()
    seconds: float = 0.0
    refused: tuple[Refused, ...] = ()
    windows: tuple[BusyWindow, ...] = ()
    log: SwitchLog | None = None
    checks: tuple[SpotLog, ...] | None = None

    def place(self, process: Process) -> str:
        """UUID of the MIG instance that the process is on; empty if it is on none, or it is not clear on which.

        Some drivers name the GPU instance alone: that will do if it has only one compute instance.
        """
        if process.gpu_instance_id is None:
            return ""
        fitting = [
            mig
            for mig in (instance.mig for instance in self.instances)
            if mig.gpu_instance_id == process.gpu_instance_id
            and process.compute_instance_id in (None, mig.compute_instance_id)
        ]
        return fitting[0].uuid if len(fitting) == 1 else ""
