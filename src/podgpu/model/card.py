"""A card with all its tenants: the join of readings, claims, processes and books, made once per cycle."""

from collections.abc import Iterator

from msgspec import Struct

from podgpu.model.device import Ability, Fault, Gpu, Instance, Process, Reading, Refused
from podgpu.model.insight import CardUse, Holding, Use
from podgpu.model.pod import Claim, ContainerRef, VirtualGpu, Workload

# Why something is booked to no container. `idle`: energy of capacity that is not reserved. `overhead`: memory in use
# that no process accounts for. `host`, `container`: processes outside Kubernetes. `unknown`: it cannot be known.
UNATTRIBUTED = ("idle", "overhead", "host", "container", "unknown")
# Booked to containers that ended and are no longer listed.
ENDED = "ended"


# How sure a number is. `exact`: measured, or the only possibility. `bounded`: the truth is proven to lie between two
# numbers. `estimated`: a likely value, under an assumption that is named.
CERTAINTIES = ("exact", "bounded", "estimated")
EXACT, BOUNDED, ESTIMATED = CERTAINTIES
# What an estimate rests on. `checks`: readings of the log of context switches at random moments. `samples`: the
# driver's samples, if no tenant keeps time with them. `claims`: what each was given.
ASSUMPTIONS = ("checks", "samples", "claims")


class Band(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """How sure a booking is: over one period, what was booked, what is proven about it, and what is likely."""

    elapsed_us: int  # length of the period
    booked_us: int  # busy time that was booked
    least_us: int  # busy time it had for certain
    most_us: int  # busy time it can have had
    booked_mj: int  # energy that was booked
    least_mj: int  # energy it used for certain
    most_mj: int  # energy it can have used
    likely_least_us: int = 0  # busy time it likely had at least; what is certain, if the booking is no estimate
    likely_most_us: int = 0  # busy time it likely had at most; what is possible, if the booking is no estimate
    likely_least_mj: int = 0  # energy it likely used at least
    likely_most_mj: int = 0  # energy it likely used at most
    certainty: str = ""  # of the busy time: `exact`, `bounded` or `estimated`
    rests_on: str = ""  # what an estimate assumes: `checks`, `samples` or `claims`; empty for any other

    @property
    def is_wide(self) -> bool:
        """Whether there is any doubt about the busy time."""
        return self.elapsed_us > 0 and self.least_us < self.most_us

    def ratio(self, busy_us: int) -> float:
        """A busy time of the period, as a part of it."""
        return busy_us / self.elapsed_us if self.elapsed_us else 0.0


REPRESENTED = "represented"


class Sampling(Struct, frozen=True, kw_only=True, gc=False):
    """How the driver's samples of a container compare with its time on the card, by the log of context switches.

    Both are shares of the time in which the card was busy. A container that keeps time with the samples does nothing
    wrong: every camera does.
    """

    checks: int  # how many readings of the log were compared
    named_ratio: float  # 0 to 1, the share of the samples that named it
    resident_ratio: float  # 0 to 1, the share of the time that it was on the card
    found: str  # `represented`; or, by more than chance, `undersampled` or `oversampled`

    @property
    def error_ratio(self) -> float:
        """By how much the samples name it too often, or, below 0, too seldom; 0 if they represent it."""
        return 0.0 if self.found == REPRESENTED else self.named_ratio - self.resident_ratio


class Booking(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What one container has of one card or MIG instance. Counters are totals over the agent's life, in integers.

    All but `instance_ratio` are parts of the whole card, also on a MIG instance: they may be added up. Methods:
    `measured`, `checked`, `resident`, `exclusive`, `instance`, `weighted`, `reserved`, `equal`.
    """

    method: str = ""  # how busy time and active energy were found; empty where none were
    processes: int | None = None  # those running now; absent if some may have been missed
    memory_bytes: int | None = None  # held by its processes; absent if not measured
    memory_limit_bytes: int | None = None  # the most it may hold; absent without a limit
    sm_ratio: float | None = None  # 0 to 1, of the card's time since the last reading; absent if unknown
    instance_ratio: float | None = None  # 0 to 1, activity of a MIG instance it has alone; absent elsewhere
    power_watts: float | None = None  # its part of the card's power now; absent if not known
    allocated_ratio: float | None = None  # 0 to 1, of the whole card; absent if nothing, or not known
    bookable: bool = True  # false if the size of what it holds is not known: its counters say nothing
    busy_us: int = 0  # microseconds of the card's busy time, so far
    energy_mj: int = 0  # millijoules, so far
    allocated_us: int = 0  # microseconds times its allocated share, so far
    unsized_us: int | None = None  # microseconds in which it held a share of unknown size; absent below a minute
    unmeasured_us: int = 0  # the part of `allocated_us` in which nobody knows whether it used it
    resident_us: int | None = None  # microseconds that it was on the card; absent without the driver's log
    settled_busy_us: int = 0  # busy time booked to it in the periods that are over
    least_busy_us: int = 0  # busy time it had for certain, in the periods that are over
    most_busy_us: int = 0  # busy time it can have had, in the periods that are over
    least_energy_mj: int = 0  # energy it used for certain, in the periods that are over
    most_energy_mj: int = 0  # energy it can have used, in the periods that are over
    likely_least_busy_us: int = 0  # busy time it likely had at least, in the periods that are over
    likely_most_busy_us: int = 0  # busy time it likely had at most, in the periods that are over
    likely_least_energy_mj: int = 0  # energy it likely used at least, in the periods that are over
    likely_most_energy_mj: int = 0  # energy it likely used at most, in the periods that are over
    band: Band | None = None  # of the last period that is over; absent before the first
    sampling: Sampling | None = None  # its samples beside its time on the card; absent if never compared
    last_active_at: float | None = None  # seconds since 1970; absent if it never worked


class Tenant(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A container on a card, or on one of its MIG instances: it holds a claim, has processes, or both."""

    container: ContainerRef  # whose it is
    mig: str = ""  # UUID of the MIG instance; empty for the whole card
    workload: Workload | None = None  # what its pod was made for; absent if not known
    held_since: float | None = None  # seconds since 1970; absent without a claim, or if not known
    claims: tuple[Claim, ...] = ()  # what it holds here
    processes: tuple[Process, ...] = ()  # largest memory first; just ended ones have no `kinds`
    booking: Booking = Booking()  # what it uses and used of the card
    idle: bool | None = None  # true: certainly no process here; false: it has one; absent: unknown
    vgpu: VirtualGpu | None = None  # what the sharing library in the container reports; absent without one
    use: Use | None = None  # its busy time and power; absent until concluded
    holding: Holding | None = None  # whether it uses what it holds; absent if it holds nothing
    unsettled: bool | None = None  # true without a claim, if what its pod was given is not understood; else absent
    without_claim: str | None = None  # why it uses this without a claim, as in problems.md; absent otherwise

    @property
    def running(self) -> list[Process]:
        return [process for process in self.processes if process.kinds]


class Rest(Struct, frozen=True, kw_only=True, gc=False):
    """What is booked to no container for one reason, and the processes it comes from."""

    reason: str  # `idle`, `overhead`, `host`, `container`, `unknown` or `ended`
    memory_bytes: int | None = None  # held now; absent if none was booked
    sm_ratio: float | None = None  # 0 to 1, of the card's time since the last reading; absent if none
    power_watts: float | None = None  # its part of the card's power now; absent if none was booked
    busy_us: int = 0  # microseconds of the card's busy time, so far
    energy_mj: int = 0  # millijoules, so far
    resident_us: int | None = None  # microseconds that it was on the card; absent without the driver's log
    band: Band | None = None  # of the last period that is over; absent before the first
    processes: tuple[Process, ...] = ()  # those it comes from, largest memory first
    use: Use | None = None  # its busy time and power; absent until concluded

    @property
    def running(self) -> list[Process]:
        return [process for process in self.processes if process.kinds]


# A container with admin access to a card: it looks at the card that others hold.
MONITOR = "monitor"


class Excused(Struct, frozen=True, kw_only=True, gc=False):
    """A container that has a card for others, or only looks at it, and the proof, which no tenant can forge."""

    role: str  # `reservation`: its pod holds the card for others; `mps-server`: its time is its clients'; `monitor`
    proof: str  # in words
    container: ContainerRef | None = None  # absent outside of containers
    pid: int | None = None  # of a server; absent for a reservation


class Charge(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Memory of a card that the kernel charges to a container's cgroup, beside that of its processes.

    The two are read one after the other, so only what each of the last readings shows is called a difference.
    """

    container: ContainerRef  # whose cgroup it is
    charged_bytes: int  # by the kernel
    listed_bytes: int | None = None  # what its processes have by the driver's list; absent if not measured
    unexplained_bytes: int | None = None  # charged, and no process has it; absent if none, or not known
    elsewhere_bytes: int | None = None  # its processes have it, charged elsewhere; absent if none, or not known


class Balance(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What the books of the card add up to: its tenants, those that ended, and the rest."""

    memory_bytes: int | None = None  # in use on the card; absent if the card does not report it
    busy_ratio: float | None = None  # 0 to 1, mean since the previous reading; absent if not measured
    busy_us: int = 0  # microseconds, so far
    energy_mj: int = 0  # millijoules, so far
    unattributed_least_us: int = 0  # busy time that was for certain no tenant's, in the periods that are over
    unattributed_most_us: int = 0  # busy time that can have been no tenant's, in the periods that are over
    band: Band | None = None  # of the last period that is over, without any doubt; absent before the first
    switches: int | None = None  # from one context to another, so far; absent without the driver's log
    switching_us: int | None = None  # microseconds between two contexts, so far; absent without the log
    switching_ratio: float | None = None  # 0 to 1, of the last cycle; absent without the driver's log
    switching_peak_ratio: float | None = None  # 0 to 1, the most of the last five full minutes; absent without the log


class XidRecord(Struct, frozen=True, kw_only=True, gc=False):
    """An XID that the driver raised, and who was on the card. A process that it ended counts as present."""

    xid: int  # the code
    at: float  # seconds since 1970
    meaning: str = ""  # of the code, in a few words; empty if not known
    severity: str = ""  # of the code, one of SEVERITIES; empty from an older agent
    advice: str = ""  # whose fault it usually is, and what to do; empty from an older agent
    present: tuple[ContainerRef, ...] | None = None  # those with a process on the card; absent if unknown
    holders: tuple[ContainerRef, ...] = ()  # those that held a share, and had no process that could be seen


class Card(Struct, frozen=True, kw_only=True, gc=False):
    """One card, read and booked. With a fault there are no readings: missing is absent, never stale.

    Former tenants are kept for a while, so that the last increase of their counters is scraped.
    """

    gpu: Gpu  # what card it is
    at: float = 0.0  # monotonic seconds of the node, when it was read
    seconds: float = 0.0  # how long reading it took
    fault: Fault | None = None  # why it could not be read; absent if it could
    ability: Ability = Ability()  # what can be known about it
    refused: tuple[Refused, ...] = ()  # what it does not answer, and should
    readings: tuple[Reading, ...] = ()  # values of the card, in base units
    instances: tuple[Instance, ...] = ()  # its MIG instances
    tenants: tuple[Tenant, ...] = ()  # those on it now; with a fault, those that hold a claim
    ended: tuple[Tenant, ...] = ()  # former tenants whose counters are still shown
    rest: tuple[Rest, ...] = ()  # what is booked to no container, by reason
    balance: Balance | None = None  # what the books add up to; absent if nothing was booked yet
    excused: tuple[Excused, ...] = ()  # who has it for others, and by what proof
    charges: tuple[Charge, ...] | None = None  # memory by the kernel's books; absent where it keeps none
    xids: tuple[XidRecord, ...] = ()  # the last ones since the agent started, newest first
    use: CardUse | None = None  # how busy it was; absent until concluded, and with a fault
    problems: tuple[str, ...] = ()  # what is wrong with it, in one or two words each; most pressing first
    severity: str = ""  # of the gravest of them, one of SEVERITIES; empty without any

    @property
    def processes(self) -> Iterator[Process]:
        """Every process on the card, also those that ended since the previous reading."""
        for tenant in self.tenants:
            yield from tenant.processes
        for rest in self.rest:
            yield from rest.processes


class Lane(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The busy time of one party in a minute. It adds up to what was booked to it."""

    container: ContainerRef | None = None  # absent for what is booked to no container
    reason: str = ""  # why it is booked to none; empty if it is booked to one
    busy_us: tuple[int, ...]  # microseconds in each column


class Lanes(Struct, frozen=True, kw_only=True, gc=False):
    """The last full minute of a card, in columns of equal length; the minute so far, before the first is over."""

    is_whole: bool  # whether the minute is over: then the card's and the tenants' bands are of the same time
    ended_at: float  # seconds since 1970
    step_us: int  # the length of a column
    elapsed_us: int  # the time that was booked
    lanes: tuple[Lane, ...]  # tenants first
    seen_us: tuple[int, ...]  # what the log covers of each column
    switching_us: tuple[int, ...]  # between two contexts, in each column
    switches: int  # from one context to another
    logged_us: int  # the time that the log is about
