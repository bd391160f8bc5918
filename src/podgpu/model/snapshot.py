"""What a source reports in a cycle, and the immutable snapshot that becomes of it."""

from msgspec import Struct

from podgpu.model.card import Card
from podgpu.model.device import Device, Fault, GuestCard
from podgpu.model.insight import Insight
from podgpu.model.pod import Allocation, Pod

SCHEMA = 2


class PartStatus(Struct, frozen=True, kw_only=True):
    """The state of one part of the agent."""

    name: str  # as in operations.md
    up: bool  # whether it worked the last time
    fault: Fault | None = None  # why not, or what is missing; absent if nothing is
    duration_seconds: float = 0.0  # how long the last reading took
    age_seconds: float | None = None  # since it last worked; absent until it worked once
    outgoing: bool | None = None  # true if it sends out what others read, so that nothing here depends on it


class ErrorCount(Struct, frozen=True, kw_only=True):
    """How often a part met an error."""

    source: str  # the part it happened in
    reason: str  # one of those in operations.md
    count: int  # how often, since the agent started


class SharingStatus(Struct, frozen=True, kw_only=True):
    """A way to share GPUs that there is a sign of on this node."""

    system: str  # as in sharing.md
    claims: int = 0  # how many it understood
    missing: str = ""  # what it takes to book by it; empty if nothing is missing
    doubts: tuple[str, ...] = ()  # what cannot be known about its claims, and what would settle it


class Snapshot(Struct, frozen=True, kw_only=True):
    """Everything a view may show, joined."""

    node: str  # name of the node
    address: str = ""  # of the machine, by its network interfaces; empty in a pod, where Kubernetes knows it
    taken_at: float  # seconds since 1970
    interval_seconds: float  # between two snapshots
    watched_since: float | None = None  # seconds since 1970, when the agent began to watch; absent if unknown
    version: str  # of podgpu
    demo: bool = False  # true if the numbers are made up
    replayed: bool = False  # true if it is played back from a recording: `taken_at` is long past
    stored: bool = False  # true if it is read from a store: no processes, claims or other evidence are in it
    driver_version: str = ""  # empty if not known
    nvml_version: str = ""  # empty if not known
    cards: tuple[Card, ...] = ()  # every GPU, and who is on it
    guests: tuple[GuestCard, ...] | None = None  # GPUs that are given to virtual machines; absent if none is
    pods: tuple[Pod, ...] = ()  # those with a claim or a process on a GPU
    unclaimed: tuple[Allocation, ...] = ()  # devices whose ids no sharing system knows, or that two pods have
    sharing: tuple[SharingStatus, ...] = ()  # the sharing systems that there is a sign of
    parts: tuple[PartStatus, ...] = ()  # what the agent reads from, and where it sends what it read
    errors: tuple[ErrorCount, ...] = ()  # counted by part and reason
    insight: Insight | None = None  # what follows from all this; absent until concluded

    @property
    def up(self) -> bool:
        """Whether every part that is read from works, and every GPU answers."""
        read = all(part.up or part.outgoing for part in self.parts)
        return read and all(card.fault is None for card in self.cards)


class XidEvent(Struct, frozen=True, kw_only=True):
    """One XID the driver raised since the report before. Two equal ones are two events."""

    uuid: str
    xid: int
    at: float


class Report(Struct, frozen=True, kw_only=True):
    """Devices that could be read, and the reason when the source as a whole could not be.

    `allocations` are what the source itself knows about who holds what, for nodes where the kubelet does not say.
    `node` is the name of the node as the source has it; empty if the source does not name it.
    `parts` are states of what the source is made of, and `part_errors` what is counted under their names.
    A `brief` report lacks what takes long to read. It is made only once, so that the first page is there soon.
    """

    devices: tuple[Device, ...] = ()
    fault: Fault | None = None
    events: tuple[XidEvent, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    parts: tuple[PartStatus, ...] = ()
    errors: dict[str, int] = {}
    part_errors: dict[str, dict[str, int]] = {}
    node: str = ""
    driver_version: str = ""
    nvml_version: str = ""
    seconds: float = 0.0
    brief: bool = False
