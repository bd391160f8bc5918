"""What follows from a snapshot or a cluster. Only `podgpu.insight` makes these; everything else shows them."""

from fnmatch import fnmatchcase
from math import ceil

from msgspec import Struct

# `working`: used within the time of --idle.after. `idle`: not used for that long, or longer. `waiting`: given not long
# ago, and not used yet. `unknown`: it cannot be known.
HOLDING_STATES = ("working", "idle", "waiting", "unknown")
# Worst first.
SEVERITIES = ("critical", "warning", "info")
# `live`: every node is read. `starting`: some have not been read yet. `partly`: some are dark. `dark`: all are.
# `unread`: nothing reads any of them. Only `live` is well.
DARK_STATES = ("live", "starting", "partly", "dark", "unread")


class Use(Struct, frozen=True, gc=False):
    """Busy time and power of one period, as parts of the whole card. All numbers on a card are of the same period."""

    ratio: float | None = None  # 0 to 1, of the card's time; absent if not known
    least: float | None = None  # what that is for certain; absent where there is no doubt
    most: float | None = None  # what that can be; absent where there is no doubt
    watts: float | None = None  # mean power of the period; absent if not known
    likely_least: float | None = None  # what that likely is at least; absent unless it is estimated
    likely_most: float | None = None  # what that likely is at most; absent unless it is estimated
    certainty: str = ""  # `exact`, `bounded` or `estimated`; empty if the ratio is not known

    @property
    def range(self) -> tuple[float | None, float | None]:
        """The two numbers to show: of an estimate the likely ones."""
        return (self.least, self.most) if self.likely_least is None else (self.likely_least, self.likely_most)


class CardUse(Struct, frozen=True, kw_only=True, gc=False):
    """How busy a card was, and of which time its numbers and those of all its tenants are."""

    period: str  # `minute`: the last full minute. `reading`: since the previous reading
    ratio: float | None = None  # 0 to 1, of the card's time; absent if not known
    watts: float | None = None  # mean power of the period; absent if not known
    note: str = ""  # how its busy time is divided, and what would make that surer; empty if nothing is to be said


class Holding(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Whether a tenant uses what it holds, and how that is known."""

    state: str  # one of HOLDING_STATES
    evidence: str  # why; one of those in problems.md
    since: float | None = None  # seconds since 1970: idle or waiting since then; absent in other states
    cost_per_hour: float | None = None  # of what it holds; absent without a price or a known share


class FreeInstances(Struct, frozen=True, gc=False):
    """Free MIG instances of one profile."""

    profile: str  # such as `1g.18gb`
    count: int  # how many


class Sums(Struct, frozen=True, kw_only=True, gc=False):
    """Sums over cards, or over what one namespace, workload or team has of them. Shares are in whole cards.

    What is not known is left out of a sum, and `unknown_` counts it. Of cards that are not fresh, only what there is
    and who holds it counts. A number of which nothing is known is absent.
    """

    gpus: int | None = None  # cards; for a group, those that it is on. Absent if no node could say
    dark_gpus: int = 0  # cards on dark nodes: what is said of them is what was last heard
    lost_gpus: int = 0  # cards that cannot be read; those of dark nodes are not known to be
    guest_gpus: int | None = None  # cards given to virtual machines, in no other sum; absent if none is
    pods: int | None = None  # pods on them, and accounts outside Kubernetes; absent if no node could say
    allocated_gpus: float | None = None  # shares that are allocated; absent if no node could say
    unknown_shares: int = 0  # holdings whose share is not known
    busy_gpus: float | None = None  # busy part of the cards' time; absent where nothing is known
    unknown_busy: int = 0  # cards, or places of a group, whose busy time is not known
    unused_gpus: float | None = None  # held, and idle; absent if it is known of no holder
    unused_pods: int | None = None  # pods that hold something idle; absent if it is known of no holder
    unknown_pods: int = 0  # pods for which it is unknown whether they use what they hold
    free_gpus: float | None = None  # shares that no tenant holds and a pod can get; absent for a group
    cordoned_gpus: float | None = None  # such shares on cordoned nodes, which are not free; absent if there are none
    fragmented_gpus: float | None = None  # the part of that on cards with tenants; absent for a group
    free_whole_gpus: int | None = None  # cards without tenants or MIG instances; absent for a group
    free_instances: tuple[FreeInstances, ...] = ()  # MIG instances that no tenant holds
    memory_used_bytes: int | None = None  # absent where nothing is known
    unknown_memory: int = 0  # cards, or places of a group, whose memory in use is not known
    memory_total_bytes: int | None = None  # of the cards; for a group, what it may have
    power_watts: float | None = None  # absent where nothing is known
    unknown_power: int = 0  # cards, or places of a group, whose power is not known
    power_limit_watts: float | None = None  # of the cards; absent where not known, and for a group
    cost_per_hour: float | None = None  # of what is held; absent without prices
    unused_cost_per_hour: float | None = None  # of what is held and idle; absent without prices
    unused_cost: float | None = None  # of that, from when it became idle until now; absent without prices


class Group(Struct, frozen=True, kw_only=True):
    """What one namespace has."""

    name: str  # of the namespace; empty outside Kubernetes
    sums: Sums = Sums()  # over its places


class Problem(Struct, frozen=True, kw_only=True):
    """Something that is wrong, or wasteful, and what to do about it."""

    kind: str  # one of those in problems.md, in their order
    severity: str  # one of SEVERITIES
    title: str  # in one or two words, such as `XID 79`
    text: str  # one sentence, which names the subject
    next_step: str = ""  # what to do about it
    node: str = ""  # where; empty if it is about the whole cluster
    gpu: int | None = None  # index of the card; absent if it is about no single card
    uuid: str = ""  # of the card
    pod: str = ""  # `namespace/pod`, or a name outside Kubernetes
    since: float | None = None  # seconds since 1970; absent if not known
    more: int = 0  # how many others like it are not listed
    last_seen: float | None = None  # seconds since 1970, when its node went dark; absent while the node is read
    command: str | None = None  # for a shell, what to run first; absent outside Kubernetes


class Dark(Struct, frozen=True, kw_only=True):
    """Of how many nodes the numbers are. A node is dark if its GPUs should be read, and are not."""

    state: str  # one of DARK_STATES
    text: str  # the same in words
    severity: str = ""  # one of SEVERITIES; empty if no node is dark
    nodes: int = 0  # how many are dark
    of_nodes: int = 0  # of how many that should be read
    gpus: int = 0  # cards on dark nodes, as last heard
    unknown_nodes: int = 0  # dark nodes of which not even the number of cards is known
    since: float | None = None  # seconds since 1970, when the first of them was last heard; absent if none ever was
    critical_nodes: int = 1  # from so many on it is critical, by --cluster.dark-critical


class WasteRow(Struct, frozen=True, kw_only=True):
    """What one team or namespace holds and does not use."""

    by: str  # `team`, by the label of that name; `namespace`, where pods have none; `outside` Kubernetes
    name: str  # of the team, the namespace or the account
    gpus: float  # shares that it holds and does not use, in whole cards, as far as they are known
    pods: int  # that hold them
    unknown_shares: int = 0  # holdings besides, whose share is not known
    since: float | None = None  # seconds since 1970: when the first of them became idle
    last_since: float | None = None  # seconds since 1970: when the last of them did
    cost_per_hour: float | None = None  # of that; absent without prices
    cost: float | None = None  # from when each became idle until now; only in rows that are asked for
    text: str = ""  # one sentence; empty in the slim form
    message: str = ""  # to the owner; empty in the slim form


class Answers(Struct, frozen=True, kw_only=True):
    """The three questions of a first look, each answered in a line."""

    wrong: str  # what is wrong
    waste: str  # who wastes
    use: str  # who uses what


class Insight(Struct, frozen=True, kw_only=True):
    """What follows from everything above it in the document."""

    idle_after_seconds: float  # by --idle.after: from then on, what is held and not used is idle
    sums: Sums = Sums()  # of all cards
    namespaces: tuple[Group, ...] = ()  # most allocated first
    problems: tuple[Problem, ...] = ()  # most pressing first
    dark: Dark | None = None  # of how many nodes all this is; absent where an older podgpu concluded
    waste: tuple[WasteRow, ...] | None = None  # most first; absent where an older podgpu concluded
    more_waste: int = 0  # teams and namespaces that waste less, and are not listed
    answers: Answers | None = None  # absent in the slim form, and where an older podgpu concluded
    currency: str = ""  # of the costs; empty without prices
    prices: dict[str, float] = {}  # of an hour of a card, by model, as far as they are known


class NodeShare(Struct, frozen=True):
    """A part of the nodes, or so many of them."""

    part: float | None = None  # 0 to 1
    number: int | None = None

    def of(self, nodes: int) -> int:
        """Return how many of so many nodes that is: one at the least."""
        wanted = self.number if self.number is not None else ceil((self.part or 0.0) * nodes)
        return max(1, wanted)


class PriceChange(Struct, frozen=True, kw_only=True):
    """New prices, in place of all those before."""

    since: float  # seconds since 1970
    gpu_hour: dict[str, float]
    kwh: float | None = None


class Prices(Struct, frozen=True, kw_only=True):
    currency: str  # such as `EUR`
    gpu_hour: dict[str, float]  # by model, or by a pattern such as `*H200*`; the first that fits counts
    kwh: float | None = None  # of energy, for a bill by energy
    changes: tuple[PriceChange, ...] = ()  # in order of time

    @property
    def changed_at(self) -> tuple[float, ...]:
        return tuple(change.since for change in self.changes)

    @property
    def has_kwh(self) -> bool:
        """Whether energy has a price at all times."""
        return self.kwh is not None and all(change.kwh is not None for change in self.changes)

    def at(self, moment: float) -> "Prices":
        """Return the prices of a moment, without changes."""
        past = [change for change in self.changes if change.since <= moment]
        then = past[-1] if past else self
        return Prices(currency=self.currency, gpu_hour=then.gpu_hour, kwh=then.kwh)

    def of(self, model: str) -> float | None:
        """Return the price of an hour; None if no entry fits."""
        fitting = (price for pattern, price in self.gpu_hour.items() if fnmatchcase(model, pattern))
        return self.gpu_hour[model] if model in self.gpu_hour else next(fitting, None)


class XidMark(Struct, frozen=True, array_like=True):
    """An XID, when it was raised, and by which card."""

    at: float
    code: int
    node: str
    gpu: int
    uuid: str
    severity: str = ""  # of the code; empty from an older agent


class Moment(Struct, frozen=True, array_like=True):
    """A snapshot or a cluster in a few numbers."""

    at: float
    gpus: int = 0
    seen_gpus: int = 0  # of which it is known how busy they were
    busy_gpus: float | None = None
    namespaces: dict[str, float] = {}  # busy GPUs by namespace, as far as they are booked to any
    throttled_gpus: int = 0
    xids: tuple[XidMark, ...] = ()  # those that were raised shortly before
