"""What a source reports in a cycle, the immutable snapshot that is made from it, and a cluster of them."""

from msgspec import Struct
from msgspec.structs import replace

from podgpu.model.card import Card
from podgpu.model.device import Device, Fault, GuestCard
from podgpu.model.insight import Insight, Problem
from podgpu.model.pod import Allocation, Pod, UnplacedHolding, Workload

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
    """A sharing system that there is a sign of on this node."""

    system: str  # as in sharing.md
    claims: int = 0  # how many it understood
    missing: str = ""  # what podgpu still needs to book by it; empty if nothing
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
    unplaced: tuple[UnplacedHolding, ...] | None = None  # what was given on cards that nothing names; absent if nothing
    sharing: tuple[SharingStatus, ...] = ()  # the sharing systems that there is a sign of
    log_is_off: bool = False  # the driver's log of context switches could be read here, and is not
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


CLUSTER_SCHEMA = 1

# The state of a node. `fresh`: read in time. `stale`: what is shown is older than three intervals. `allocation`: its
# GPUs are not read, so only what Kubernetes allocated is known. `failed`: reading its GPUs gave nothing usable, or
# nothing for five minutes. What it last said may be shown, as such.
NODE_STATES = ("fresh", "stale", "allocation", "failed")
# Who reported the use of a node's GPUs.
ORIGINS = ("agent", "dcgm", "store", "api")


class Written(Struct, frozen=True):
    """A snapshot and the document that it was decoded from, which is not that of a changed copy."""

    snapshot: Snapshot
    document: bytes  # gzip of JSON in one line

    def __repr__(self) -> str:
        return "Written(…)"


class LastWords(Struct, frozen=True, kw_only=True):
    """What a dark node last said. After the time of --cluster.remember, only when."""

    at: float  # seconds since 1970, by the clock of the reader: when it last gave new numbers
    gpus: int | None = None  # its cards; absent once forgotten
    pods: tuple[str, ...] = ()  # who held them, as `namespace/pod`; the first few
    more_pods: int = 0  # how many others did
    problems: tuple[Problem, ...] = ()  # what was wrong


class ClusterNode(Struct, frozen=True, kw_only=True, weakref=True):
    """One node. A node that does not answer keeps its row and says why."""

    name: str  # as Kubernetes knows it; where several clusters are read, `cluster/name`
    state: str  # one of NODE_STATES
    cluster: str = ""  # the cluster that it belongs to; empty unless several are read
    origin: str = ""  # one of ORIGINS; empty if nothing was reported
    reason: str = ""  # why it is not fresh, a closed set; empty if it is
    detail: str = ""  # the same in words, and what to do next
    snapshot: Snapshot | None = None  # the newest, slim; with `allocation` no books, and only sizes are read
    allocatable: dict[str, str] = {}  # resources of GPUs, as the node offers them to Kubernetes
    model: str = ""  # of its GPUs, by the node's labels or its snapshot; empty if not known or mixed
    ready: bool | None = None  # whether Kubernetes says that the node is; absent if not known
    cordoned: bool | None = None  # true if Kubernetes places no pod on it; else absent
    address: str = ""  # its internal IP address; empty if not known
    insight: Insight | None = None  # what follows, if the node is not fresh or is cordoned; else the snapshot has it
    dark: bool | None = None  # true if its GPUs should be read, and are not; else absent
    heard: LastWords | None = None  # what it last said, if it is dark and was ever read; else absent
    written: Written | None = None  # in no document

    @property
    def is_dark(self) -> bool:
        """Whether its GPUs should be read, and are not."""
        return self.state == "stale" or (self.state == "failed" and self.reason != "starting")

    @property
    def is_outdated(self) -> bool:
        """Whether all that is known of it was heard long ago: who holds its cards now, nobody knows."""
        return self.state == "failed" and self.snapshot is not None and self.origin != "api"

    @property
    def bare_name(self) -> str:
        """Its name within its cluster."""
        return self.name.removeprefix(f"{self.cluster}/") if self.cluster else self.name

    @property
    def concluded(self) -> Insight | None:
        """What follows from what is known of the node now."""
        return self.insight or (self.snapshot.insight if self.snapshot else None)


def set_aside(node: ClusterNode, error: Exception) -> ClusterNode:
    """Return the node without what it sent, which a view cannot show, and with the reason."""
    detail = f"What it sent cannot be shown ({type(error).__name__}): check the log, and report it."
    return replace(
        node, state="failed", reason="failed", detail=detail, snapshot=None, written=None, insight=None, dark=True
    )


class PendingPod(Struct, frozen=True, kw_only=True):
    """A pod that asks for a GPU and is on no node yet."""

    namespace: str  # of the pod
    name: str  # of the pod
    cluster: str = ""  # the cluster that it waits in; empty unless several are read
    uid: str = ""  # as the API server knows it
    since: float | None = None  # seconds since 1970, when it was made; absent if not known
    asks: dict[str, str] = {}  # resources of GPUs, summed over its containers, as Kubernetes quantities
    claims: tuple[str, ...] = ()  # resource claims that it waits for
    reason: str = ""  # what the scheduler says; empty if it said nothing
    workload: Workload | None = None  # what it was made for; absent if not known


class Cluster(Struct, frozen=True, kw_only=True, weakref=True):
    """Everything a view of many nodes may show."""

    taken_at: float  # seconds since 1970
    version: str  # of podgpu
    interval_seconds: float = 0.0  # between two rounds of its reader; 0 if it is read once
    name: str = ""  # of the cluster; empty if none was given
    demo: bool = False  # true if any node's numbers are made up
    replayed: bool = False  # true if it is played back from a recording: `taken_at` is long past
    has_store: bool = False  # true if its reader has a store: then there are bills and longer histories
    nodes: tuple[ClusterNode, ...] = ()  # by name
    pending: tuple[PendingPod, ...] = ()  # oldest first
    parts: tuple[PartStatus, ...] = ()  # what the reader of the cluster depends on
    errors: tuple[ErrorCount, ...] = ()  # counted by part and reason; nodes have their own
    insight: Insight | None = None  # what follows from all this; absent until concluded


def of_one(snapshot: Snapshot) -> Cluster:
    """Show one agent's node as a cluster."""
    node = ClusterNode(name=snapshot.node, state="fresh", origin="agent", snapshot=snapshot)
    return Cluster(
        taken_at=snapshot.taken_at,
        version=snapshot.version,
        interval_seconds=snapshot.interval_seconds,
        demo=snapshot.demo,
        nodes=(node,),
        insight=snapshot.insight,
    )
