"""A month of a small cluster: what was true, and what a store has of it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

MINUTE, HOUR, DAY = 60, 3600, 86_400
GRACE = 5 * MINUTE  # for so long an agent shows a pod that has ended
BEFORE, AFTER = 2 * HOUR, HOUR  # of the history, around the month
WATTS_IDLE, WATTS_BUSY, HOST = 80, 400, 0.05
METER_MJ = 7_000_000_000  # the driver was loaded long ago

# How much of its busy time a pod had at least and at most, and likely so.
RANGES = {
    ("bound", "bound", "least"): 0.5,
    ("bound", "bound", "most"): 1.5,
    ("likely", "end", "least"): 0.8,
    ("likely", "end", "most"): 1.2,
}

Stretch = tuple[float, float]


def common(stretches: Iterable[Stretch], others: Iterable[Stretch]) -> list[Stretch]:
    all_others = list(others)
    found = [(max(begin, first), min(end, last)) for begin, end in stretches for first, last in all_others]
    return sorted(stretch for stretch in found if stretch[0] < stretch[1])


def without(stretches: Iterable[Stretch], taken: Iterable[Stretch]) -> list[Stretch]:
    left = list(stretches)
    for begin, end in taken:
        pieces = [piece for first, last in left for piece in ((first, min(last, begin)), (max(first, end), last))]
        left = [piece for piece in pieces if piece[0] < piece[1]]
    return sorted(left)


def length(stretches: Iterable[Stretch]) -> float:
    return sum(end - begin for begin, end in stretches)


@dataclass(frozen=True)
class Tenant:
    """A pod that holds `share` of a GPU and keeps it busy for `busy` of the time."""

    uuid: str
    pod: str
    namespace: str
    team: str
    mig: str
    share: float
    busy: float
    begins: float
    ends: float

    @property
    def key(self) -> tuple[str, str, str]:
        return self.namespace, self.pod, self.mig


@dataclass(frozen=True)
class Stay:
    """A GPU in a node, from one time to another. It may be lost for some time in between."""

    node: str
    uuid: str
    model: str
    begins: float
    ends: float
    lost: tuple[Stretch, ...] = ()

    @property
    def there(self) -> list[Stretch]:
        return without([(self.begins, self.ends)], self.lost)


@dataclass(frozen=True)
class MonthNode:
    """`there`: when Kubernetes has it. `agents`: when each ran. `jump`: when its clock is wrong, and by how much."""

    name: str
    there: Stretch
    agents: tuple[Stretch, ...]
    offset: float  # of its scrapes
    jump: tuple[float, float, float] = (0.0, 0.0, 0.0)
    unscraped_gpus: int = 0
    replicas: int = 1
    has_count: bool = False


@dataclass(frozen=True)
class Truth:
    """Of a GPU in a node: the time it was seen, not seen, not there; and at how many edges that is not exact."""

    seen: float
    unseen: float
    absent: float
    edges: int


@dataclass
class Month:
    """Times are seconds since 1970."""

    name: str
    start: float
    end: float
    interval: int
    nodes: list[MonthNode] = field(default_factory=list)
    stays: list[Stay] = field(default_factory=list)
    tenants: list[Tenant] = field(default_factory=list)
    away: list[Stretch] = field(default_factory=list)  # the store was
    prices: dict[str, Any] = field(default_factory=dict)
    price_change: float | None = None
    has_kubernetes: bool = True

    @property
    def whole(self) -> Stretch:
        return self.start - BEFORE, self.end + AFTER

    @property
    def pause(self) -> float:
        """A shorter gap is no gap."""
        return max(3 * self.interval, 60)

    def node(self, name: str) -> MonthNode:
        return next(node for node in self.nodes if node.name == name)

    def counted(self, stay: Stay) -> list[Stretch]:
        """When an agent counted what the GPU did."""
        return common(stay.there, self.node(stay.node).agents)

    def known(self, stay: Stay) -> list[Stretch]:
        """What of that a store can know of the month: not what came after its last sample."""
        missed = [away for away in self.away if away[1] >= self.end]
        return without(common(self.counted(stay), [(self.start, self.end)]), missed)

    def scrapes(self, node: MonthNode) -> Iterator[tuple[float, float]]:
        """When it was scraped, and the time that the sample got. Stores refuse a sample from before their last."""
        begins, ends, wrong = node.jump
        first, last = self.whole
        latest = 0.0
        at = first + node.offset
        while at <= last:
            stamp = at + (wrong if begins <= at < ends else 0)
            if stamp > latest and not any(away[0] <= at < away[1] for away in self.away):
                latest = stamp
                yield at, stamp
            at += self.interval

    def blind(self, nodes: Iterable[MonthNode]) -> list[Stretch]:
        """When nothing of these nodes came into the store: it was away, or refused samples older than its last."""
        found = list(self.away)
        for node in nodes:
            begins, ends, wrong = node.jump
            found.append((begins, begins - wrong) if wrong < 0 else (ends, ends + wrong))
        return found

    # The truth.

    def held(self, tenant: Tenant, period: Stretch) -> list[Stretch]:
        """When a tenant held its GPU while an agent counted it, and its counters came into the store."""
        found = []
        for stay in self._stays(tenant.uuid):
            blind = self.blind([self.node(stay.node)])
            lost = [stretch for stretch in blind if stretch[0] <= tenant.ends + GRACE <= stretch[1]]
            held = without([(tenant.begins, tenant.ends)], lost)
            found += common(common(held, self.known(stay)), [period])
        return found

    def _stays(self, uuid: str) -> list[Stay]:
        return [stay for stay in self.stays if stay.uuid == uuid]

    def price(self, model: str, at: float) -> float:
        if self.price_change is not None and at >= self.price_change:
            return 2.5
        return 3.51 if "H200" in model else 1.07

    def cost(self, stretches: Iterable[Stretch], model: str) -> float:
        """What a whole GPU of this model costs in these stretches."""
        cut = self.price_change or self.start
        parts = (common(stretches, [side]) for side in ((0.0, cut), (cut, self.end)))
        return sum((end - begin) / HOUR * self.price(model, begin) for part in parts for begin, end in part)

    def edges(self, tenant: Tenant, period: Stretch) -> float:
        """At how many moments of its time up to one scrape interval is not known.

        If its last counters were shown when the store began to take samples again, it may have them, or not.
        """
        gone = tenant.ends + GRACE
        blind = self.blind(self.node(stay.node) for stay in self._stays(tenant.uuid))
        near = [stretch for stretch in blind if min(abs(gone - edge) for edge in stretch) <= 2 * self.interval]
        # What it had right before the period may be scraped within it.
        pieces = len(self.held(tenant, period)) or int(0 <= period[0] - tenant.ends <= self.interval)
        return 2 * pieces + sum(2 + length([stretch]) / self.interval for stretch in near)

    def days(self) -> list[Stretch]:
        """The days of the month, in UTC. The first and the last may be parts of one."""
        midnights = range(int(self.start // DAY + 1) * DAY, int(-(-self.end // DAY)) * DAY, DAY)
        return list(pairwise([self.start, *map(float, midnights), self.end]))

    def late(self, edges: Iterable[float], uuid: str) -> float:
        """How many seconds of a GPU may count as of the wrong side of an edge of a day, or of a price.

        The store learnt them when it was back, or at the time of a clock that was wrong.
        """
        found = [(*away, length([away])) for away in self.away]
        for node in {stay.node for stay in self._stays(uuid)}:
            begins, ends, wrong = self.node(node).jump
            found.append((begins - abs(wrong), ends + abs(wrong), abs(wrong)))
        at_all = list(edges)
        return sum(
            seconds
            for begins, ends, seconds in found
            if any(begins - self.interval <= at <= ends + self.interval for at in at_all)
        )

    def misdated(self, node: str, uuid: str) -> float:
        """By how many seconds a GPU seems to come or go too early or too late, as its node's clock was wrong then."""
        begins, ends, wrong = self.node(node).jump
        own = (stay for stay in self.stays if (stay.node, stay.uuid) == (node, uuid))
        edges = (edge for stay in own for piece in self.known(stay) for edge in piece)
        return abs(wrong) if any(begins <= edge < ends for edge in edges) else 0.0

    def coverage(self) -> dict[tuple[str, str], Truth]:
        period = self.start, self.end
        found = {}
        for stay in self.stays:
            node = self.node(stay.node)
            counted = self.known(stay)
            if not counted:
                continue
            counted = _bridged(counted, self.pause)
            there = common([period], [node.there]) if self.has_kubernetes else [period]
            gaps = without([(counted[0][0], counted[-1][1])], counted)
            before, after = (self.start, counted[0][0]), (counted[-1][1], self.end)
            # The GPU is missed where it was last, and before its first scrape where it was first.
            others = [other for other in self.stays if other.uuid == stay.uuid and other.node != stay.node]
            seen_there = [(other.begins, times[0][0]) for other in others if (times := self.known(other))]
            if any(begins < stay.begins for begins, _ in seen_there):
                before = self.start, self.start
            after = after[0], min([self.end, *(at for begins, at in seen_there if begins > stay.begins)])
            edges = common([edge for edge in (before, after) if edge[0] < edge[1]], there)
            unseen = gaps + [edge for edge in edges if edge[1] - edge[0] > self.pause]
            seen = length(counted)
            missed = length(unseen)
            found[stay.node, stay.uuid] = Truth(
                seen, missed, self.end - self.start - seen - missed, 2 + 2 * len(unseen) + len(counted)
            )
        for node in self.nodes if self.has_kubernetes else ():
            there_for = length(common([node.there], [period]))
            for at in range(node.unscraped_gpus if there_for else 0):
                truth = Truth(0.0, there_for, self.end - self.start - there_for, 2)
                found[node.name, f"{node.name}/{at}"] = truth
        return found

    # The history.

    def lines(self) -> Iterator[str]:
        for node in self.nodes:
            if self.has_kubernetes:
                yield from self._kubernetes(node)
            if node.agents:
                yield from self._node(node)

    def _kubernetes(self, node: MonthNode) -> Iterator[str]:
        base = f'node="{node.name}",cluster="{self.name}",job="kube-state-metrics"'
        labels = f'label_nvidia_com_gpu_product="NVIDIA-L40S",label_nvidia_com_gpu_replicas="{node.replicas}"'
        if node.has_count:
            labels += f',label_nvidia_com_gpu_count="{node.unscraped_gpus}"'
        capacity = node.unscraped_gpus * node.replicas
        at = self.whole[0] + 7
        while at <= self.whole[1]:
            is_away = any(away[0] <= at < away[1] for away in self.away)
            if node.there[0] <= at < node.there[1] and not is_away:
                stamp = round(at * 1000)
                yield f"kube_node_info{{{base}}} 1 {stamp}"
                yield f"kube_node_created{{{base}}} {int(node.there[0])} {stamp}"
                if capacity:
                    yield f'kube_node_status_capacity{{{base},resource="nvidia_com_gpu"}} {capacity} {stamp}'
                    yield f"kube_node_labels{{{base},{labels}}} 1 {stamp}"
            at += self.interval

    def _node(self, node: MonthNode) -> Iterator[str]:
        for stay in [stay for stay in self.stays if stay.node == node.name]:
            own = [tenant for tenant in self.tenants if tenant.uuid == stay.uuid]
            yield from self._stay(node, stay, own)

    def _stay(self, node: MonthNode, stay: Stay, tenants: Sequence[Tenant]) -> Iterator[str]:
        books = _Books(self, node, stay, tenants)
        for at, stamp in self.scrapes(node):
            yield from books.scrape(at, round(stamp * 1000))


class _Books:
    """The counters of a GPU in a node as its agents show them. They are exact at every scrape."""

    def __init__(self, month: Month, node: MonthNode, stay: Stay, tenants: Sequence[Tenant]) -> None:
        self._month = month
        self._node = node
        self._stay = stay
        self._tenants = sorted(tenants, key=lambda tenant: tenant.begins)

    def scrape(self, at: float, stamp: int) -> Iterator[str]:
        agent = next((agent for agent in self._node.agents if agent[0] <= at < agent[1]), None)
        if agent is None or not any(begin <= at < end for begin, end in self._stay.there):
            return
        since = common(self._stay.there, [(agent[0], at)])
        # Ranges are of the minutes that are over.
        over = common(since, [(agent[0], at - (at - agent[0]) % MINUTE)])
        number = self._node.agents.index(agent)
        base = (
            f'cluster="{self._month.name}",node="{self._node.name}",gpu="0",uuid="{self._stay.uuid}",job="podgpu",'
            f'instance="{self._node.name}-{number}"'
        )
        yield f'podgpu_gpu_info{{{base},model="{self._stay.model}"}} 1 {stamp}'
        held_seconds = busy_seconds = 0.0
        sums: dict[tuple[str, str, str], list[float]] = {}
        shown: dict[tuple[str, str, str], Tenant] = {}
        for tenant in self._tenants:
            if tenant.begins > at:
                break
            seconds, ranged = (length(common(times, [(tenant.begins, tenant.ends)])) for times in (since, over))
            held_seconds += tenant.share * seconds
            busy_seconds += tenant.busy * seconds
            before = shown.get(tenant.key)
            if before is None or tenant.begins - before.ends > GRACE:
                sums[tenant.key] = [0.0, 0.0, 0.0]  # the one before was forgotten
            shown[tenant.key] = tenant
            sums[tenant.key][0] += tenant.share * seconds
            sums[tenant.key][1] += tenant.busy * seconds
            sums[tenant.key][2] += tenant.busy * ranged
        visible = length(since)
        watts = WATTS_IDLE * visible + WATTS_BUSY * (busy_seconds + HOST * visible)
        meter = METER_MJ + self._meter(at)
        yield f"podgpu_gpu_energy_joules_total{{{base}}} {meter / 1e3} {stamp}"
        yield f"podgpu_gpu_booked_energy_joules_total{{{base}}} {_milli(watts)} {stamp}"
        yield f"podgpu_gpu_booked_busy_seconds_total{{{base}}} {_micro(busy_seconds + HOST * visible)} {stamp}"
        idle = WATTS_IDLE * (visible - held_seconds)
        for reason, energy, busy in (
            ("idle", idle, 0.0),
            ("host", WATTS_BUSY * HOST * visible, HOST * visible),
        ):
            yield f'podgpu_unattributed_energy_joules_total{{{base},reason="{reason}"}} {_milli(energy)} {stamp}'
            yield f'podgpu_unattributed_busy_seconds_total{{{base},reason="{reason}"}} {_micro(busy)} {stamp}'
        for bound in ("least", "most"):
            bounded = f'{base},bound="{bound}"'
            yield f"podgpu_unattributed_busy_bound_seconds_total{{{bounded}}} {_micro(HOST * length(over))} {stamp}"
        for key, tenant in shown.items():
            last = min(tenant.ends, at)
            if at - tenant.ends <= GRACE and last > agent[0] and sums[key][0] > 0:
                yield from self._pod(base, tenant, sums[key], stamp, is_there=tenant.ends > at)

    def _pod(self, base: str, tenant: Tenant, sums: Sequence[float], stamp: int, *, is_there: bool) -> Iterator[str]:
        held, busy, ranged = sums
        labels = f'{base},namespace="{tenant.namespace}",pod="{tenant.pod}",container="main",mig="{tenant.mig}"'
        yield f"podgpu_container_allocated_seconds_total{{{labels}}} {_micro(held)} {stamp}"
        yield f"podgpu_container_busy_seconds_total{{{labels}}} {_micro(busy)} {stamp}"
        for (name, label, end), factor in RANGES.items():
            ranged_by = f'{labels},{label}="{end}"'
            yield f"podgpu_container_busy_{name}_seconds_total{{{ranged_by}}} {_micro(ranged * factor)} {stamp}"
        energy = WATTS_IDLE * held + WATTS_BUSY * busy
        yield f"podgpu_container_energy_joules_total{{{labels}}} {_milli(energy)} {stamp}"
        if is_there:
            info = f'cluster="{self._month.name}",node="{self._node.name}",namespace="{tenant.namespace}"'
            info += f',pod="{tenant.pod}",pod_uid="{tenant.begins}",label_team="{tenant.team}",job="podgpu"'
            yield f"podgpu_pod_info{{{info}}} 1 {stamp}"

    def _meter(self, at: float) -> int:
        """The driver counts whether or not an agent is there."""
        first = self._month.whole[0]
        seconds = at - first
        busy = sum(tenant.busy * max(min(at, tenant.ends) - max(first, tenant.begins), 0.0) for tenant in self._tenants)
        return round((WATTS_IDLE * seconds + WATTS_BUSY * (busy + HOST * seconds)) * 1e3)


def _micro(seconds: float) -> float:
    return round(seconds * 1e6) / 1e6


def _milli(joules: float) -> float:
    return round(joules * 1e3) / 1e3


def _bridged(stretches: Sequence[Stretch], pause: float) -> list[Stretch]:
    """Join stretches that are not far apart: an agent that is updated misses nothing."""
    found = [stretches[0]]
    for begin, end in stretches[1:]:
        if begin - found[-1][1] <= pause:
            found[-1] = found[-1][0], end
        else:
            found.append((begin, end))
    return found
