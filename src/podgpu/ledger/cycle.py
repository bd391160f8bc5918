"""The books of one cycle: a booking for each tenant, and for each reason why something belongs to none."""

from collections.abc import Mapping

from msgspec import Struct, field

from podgpu.model import BusyWindow, Claim, ContainerRef, Process, Sampling


class TenantKey(Struct, frozen=True, order=True, gc=False):
    """A container on one device or MIG instance."""

    gpu: str
    mig: str
    container: ContainerRef


# What something is booked to: a tenant, or the reason why there is none.
Party = TenantKey | str


class Interval(Struct, frozen=True, kw_only=True, gc=False):
    """What a device did since its previous reading. None is what it did not report.

    `is_gap` marks a time without readings: its energy is known, its users are not. `energy_us` is the time that the
    energy covers: longer than the interval where the counter moves only now and then, 0 where it stood still, None
    where it was never seen to move before, so that it is unknown when the energy began to be drawn. `is_sampled` says
    that the busy time is that of a moment, taken for the whole interval. `unnamed_us` is busy time of earlier intervals
    for which no sample of the driver has named a process yet. `drawn_mj` and `idle_drawn_mj` are what the power meter
    says of this interval alone: the energy, and as much of it as the idle card draws.
    """

    elapsed_us: int
    energy_mj: int | None = None
    energy_us: int | None = 0
    idle_mj: int = 0
    busy_us: int | None = None
    is_gap: bool = False
    is_sampled: bool = False
    unnamed_us: int = 0
    drawn_mj: int | None = None
    idle_drawn_mj: int = 0

    @property
    def stands(self) -> bool:
        """Whether the energy counter is known and has not moved."""
        return self.energy_mj == 0 and self.energy_us == 0 and not self.is_gap


class SpotCheck(Struct, frozen=True, kw_only=True, gc=False):
    """Who was on the card at a random moment by the log of context switches, or throughout a cycle.

    `resident` and `named` are shares that add up to 1: of the time on the card in the check, and of the samples of the
    cycle around it. `seconds` is the time that it stands for: its moment was drawn from as much. `busy_seconds` is how
    much of that the card was busy. `is_guess` says that nothing was switched, so that `resident` is by the samples.
    """

    seconds: float
    busy_seconds: float
    resident: Mapping[Party, float]
    named: Mapping[Party, float]
    is_guess: bool = False


class CycleBooking(Struct, kw_only=True, gc=False):
    """One party's booking for one cycle: its claims and processes, and what it used. Counters are increases.

    `sm_ratio` is the booked busy time as a part of the card's time, None if it is unknown what the party did;
    `instance_ratio` is the activity of a MIG instance that it is alone on. `named_us` is the busy time of the samples
    that named it; `resident_us` is how long its contexts were on the card, None without a log of switches; then
    `least_us` and `most_us` are what the log proves of its busy time. `idle_mj` is the part of `energy_mj` that the
    card draws without doing anything. `unsized_us` is for how long it held a share of unknown size. `sampling` is how
    its samples compare with the log, None where that is not known.
    """

    claims: list[Claim] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    running: int = 0
    memory_bytes: int | None = None
    sm_ratio: float | None = None
    instance_ratio: float | None = None
    share: float | None = None
    memory_limit_bytes: int | None = None
    method: str = ""
    named_us: int | None = None
    resident_us: int | None = None
    busy_us: int = 0
    least_us: int = 0
    most_us: int = 0
    energy_mj: int = 0
    idle_mj: int = 0
    allocated_us: int = 0
    unsized_us: int = 0
    sampling: Sampling | None = None


class EnergyParts(Struct, frozen=True, gc=False):
    """Millijoules by party in `elapsed_us`: of what the idle card draws, and of what it draws beyond that."""

    idle: Mapping[Party, int] = field(default_factory=dict)
    active: Mapping[Party, int] = field(default_factory=dict)
    elapsed_us: int = 0

    @property
    def idle_mj(self) -> int:
        return sum(self.idle.values())

    @property
    def active_mj(self) -> int:
        return sum(self.active.values())


NO_ENERGY = EnergyParts()


class WindowBooking(Struct, frozen=True, gc=False):
    """What the driver's log says of one window: how long any context was on the card, and what is booked to each."""

    window: BusyWindow
    resident_ns: int
    booked: Mapping[Party, int]


class CycleBooks(Struct, frozen=True, kw_only=True, gc=False):
    """One device's books for one cycle; the bookings of all parties, with `gone_mj`, add up to these totals exactly.

    `is_watched` says that every process on the device is listed and its owner known: a party without one is idle.
    `knows_busy` says that it was measured whether the device was busy; if not, 0 means nothing. `unnamed_us` and
    `estimates`, which say who drew the energy that is not counted yet, go into the next cycle. `gone_mj` is energy of
    earlier cycles that belongs to tenants without a booking in this one. `switches` and `switching_us`, the time
    between two contexts, are None without a log of them; `logged_us` is the time that the log is about. `windows` are
    those that the log decides. `checks` are what the log, read now and then or throughout, says beside the samples, and
    `named` has each party's share of the samples, where there are checks.
    """

    gpu: str
    bookings: dict[Party, CycleBooking]
    memory_bytes: int | None
    busy_us: int
    energy_mj: int
    elapsed_us: int = 0
    active_mj: int = 0
    is_watched: bool = False
    knows_busy: bool = False
    unnamed_us: int = 0
    estimates: EnergyParts = NO_ENERGY
    gone_mj: dict[TenantKey, int] = field(default_factory=dict)
    switches: int | None = None
    switching_us: int | None = None
    logged_us: int = 0
    checks: tuple[SpotCheck, ...] = ()
    named: Mapping[Party, float] = field(default_factory=dict)
    windows: tuple[WindowBooking, ...] = ()

    @property
    def is_logged(self) -> bool:
        return self.switches is not None

    @property
    def busy_ratio(self) -> float | None:
        return min(self.busy_us / self.elapsed_us, 1.0) if self.knows_busy and self.elapsed_us else None

    @property
    def switching_ratio(self) -> float | None:
        """The part of the time that the log covers, which ends a little before the cycle does."""
        if self.switching_us is None or not self.logged_us:
            return None
        return self.switching_us / self.logged_us
