"""Two days of a small cluster, made up: every counter as podgpu would have shown it, and what was true.

Node `alpha` has one GPU, and its agent restarts twice. Node `beta` has one, comes late and leaves early.
Everything is in integers: microseconds and millijoules.
"""

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

MINUTE = 60
HOUR = 3600
DAY = 24 * HOUR
LENGTH = 48 * HOUR
STEP = MINUTE

Key = tuple[str, str, str]  # pod or reason, quantity, node


@dataclass(frozen=True)
class Tenant:
    """A pod that holds `share` of the GPU and keeps it busy for `busy` of the time."""

    node: str
    pod: str
    share: float
    busy: float
    begins: int
    ends: int
    team: str = "red"

    def is_there(self, at: int) -> bool:
        return self.begins <= at < self.ends


TENANTS = (
    Tenant("alpha", "trainer-0", 0.5, 0.4, 0, LENGTH),
    # Its counters are as large after the agent's first restart as they were before it.
    Tenant("alpha", "late-0", 0.125, 0.1, 10 * HOUR - MINUTE, 11 * HOUR, "blue"),
    # Begins and ends within the period, and within a single window of the report.
    Tenant("alpha", "burst-1", 0.25, 0.2, 3 * HOUR + 7 * MINUTE, 3 * HOUR + 41 * MINUTE, "blue"),
    # The same name twice, with a pause that is longer than podgpu remembers an ended pod.
    Tenant("alpha", "job-0", 0.25, 0.1, 8 * HOUR, 9 * HOUR, "blue"),
    Tenant("alpha", "job-0", 0.25, 0.2, 30 * HOUR, 34 * HOUR, "green"),
    Tenant("beta", "web-0", 1.0, 0.3, 20 * HOUR, 40 * HOUR, "green"),
)
NODES = {"alpha": (0, LENGTH), "beta": (20 * HOUR, 40 * HOUR)}
# An agent that restarts right after a scrape loses nothing; one that restarts right before it loses a minute.
RESTARTS_AFTER = {"alpha": 10 * HOUR}
RESTARTS_BEFORE = {"alpha": 15 * HOUR}
GRACE = 5 * MINUTE
NOT_SCRAPED = range(25 * HOUR, 25 * HOUR + 40 * MINUTE)  # the store was down
WATTS_IDLE, WATTS_BUSY = 80, 400
# When the past begins so that the first sample of `late-0`, or of node `beta`, lies exactly on midnight.
LATE_AT_MIDNIGHT, BETA_AT_MIDNIGHT = 14, 4


@dataclass
class Books:
    """The counters of one GPU, and what has been added to each."""

    counters: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    last_seen: dict[str, int] = field(default_factory=dict)
    meter_mj: int = 7_000_000_000  # the driver was loaded long ago
    incarnation: int = 0

    def restart(self) -> None:
        """A new agent begins at 0, and at another address."""
        self.counters.clear()
        self.last_seen.clear()
        for name in ("booked", "idle", "host"):
            self.counters[name, "busy"] = self.counters[name, "energy"] = 0
        self.incarnation += 1


class Past:
    """`page` is the text that an import takes. `grown` holds what each counter grew by, by when it was scraped."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.lines: list[str] = []
        self.grown: dict[Key, list[tuple[int, int]]] = defaultdict(list)
        self._waiting: dict[Key, int] = defaultdict(int)
        for node, (begins, ends) in NODES.items():
            self._node(node, begins, ends)
            self.lines.extend(self._kubernetes(node, begins, ends))

    @classmethod
    def recent(cls, hour: int = LATE_AT_MIDNIGHT) -> "Past":
        """Begin at the same hour UTC whenever a test runs, and end before now."""
        return cls(int(time.time()) // DAY * DAY - 3 * DAY + hour * HOUR)

    def total(self, key: Key, begins: int, ends: int) -> int:
        """What was scraped after `begins` and until `ends`, in seconds after the start."""
        return sum(amount for at, amount in self.grown[key] if begins < at <= ends)

    def _node(self, node: str, begins: int, ends: int) -> None:
        books = Books()
        for at in range(begins, ends + 1, STEP):
            if at > begins:
                self._minute(node, books, at)
            if at == RESTARTS_BEFORE.get(node):
                books.restart()
                self._forget(node)
            if at not in NOT_SCRAPED:
                self._note(node, at)
                self.lines.extend(self._scrape(node, books, at))
            if at == RESTARTS_AFTER.get(node):
                books.restart()

    def _kubernetes(self, node: str, begins: int, ends: int) -> Iterator[str]:
        """What kube-state-metrics has of a node, for as long as it is in the cluster."""
        for at in range(begins, ends + 1, STEP):
            stamp = (self.start + at) * 1000
            yield f'kube_node_info{{node="{node}",job="kube-state-metrics"}} 1 {stamp}'
            yield f'kube_node_created{{node="{node}",job="kube-state-metrics"}} {self.start + begins} {stamp}'

    def _note(self, node: str, at: int) -> None:
        for key in [key for key in self._waiting if key[2] == node]:
            self.grown[key].append((at, self._waiting.pop(key)))

    def _forget(self, node: str) -> None:
        """The driver's own counter goes on; the agent's books of the last minute were never seen."""
        for key in [key for key in self._waiting if key[2] == node and key[0] != "meter"]:
            del self._waiting[key]

    def _minute(self, node: str, books: Books, at: int) -> None:
        before = at - STEP
        there = [tenant for tenant in TENANTS if tenant.node == node and tenant.is_there(before)]
        busy = sum(tenant.busy for tenant in there)
        moved = {
            tenant.pod: (tenant.busy, WATTS_IDLE * tenant.share + WATTS_BUSY * tenant.busy) for tenant in there
        } | {
            "idle": (0.0, WATTS_IDLE * (1 - sum(tenant.share for tenant in there))),
            "host": (0.05, WATTS_BUSY * 0.05),
        }
        for tenant in there:
            self._add(node, books, (tenant.pod, "held"), round(tenant.share * STEP * 1e6))
            books.last_seen[tenant.pod] = at
        for name, (ratio, watts) in moved.items():
            busy_us, energy_mj = round(ratio * STEP * 1e6), round(watts * STEP * 1e3)
            self._add(node, books, (name, "busy"), busy_us)
            self._add(node, books, (name, "energy"), energy_mj)
            self._add(node, books, ("booked", "busy"), busy_us)
            self._add(node, books, ("booked", "energy"), energy_mj)
            books.meter_mj += energy_mj
            self._waiting["meter", "energy", node] += energy_mj
        assert busy < 1

    def _add(self, node: str, books: Books, name: tuple[str, str], amount: int) -> None:
        books.counters[name] += amount
        self._waiting[(*name, node)] += amount

    def _scrape(self, node: str, books: Books, at: int) -> Iterator[str]:
        stamp = (self.start + at) * 1000
        base = f'node="{node}",gpu="0",uuid="GPU-{node}",job="podgpu",instance="{node}-{books.incarnation}"'
        yield f'podgpu_gpu_info{{{base},model="{_MODEL[node]}"}} 1 {stamp}'
        yield f"podgpu_gpu_energy_joules_total{{{base}}} {books.meter_mj / 1e3} {stamp}"
        for (name, quantity), value in books.counters.items():
            if name == "booked":
                yield f"podgpu_gpu_booked_{_NAME[quantity]}_total{{{base}}} {value / _UNIT[quantity]} {stamp}"
            elif name in ("idle", "host"):
                labels = f'{base},reason="{name}"'
                yield f"podgpu_unattributed_{_NAME[quantity]}_total{{{labels}}} {value / _UNIT[quantity]} {stamp}"
            elif at - books.last_seen.get(name, at) <= GRACE:
                labels = f'{base},namespace="ml",pod="{name}",container="main",mig=""'
                yield f"podgpu_container_{_NAME[quantity]}_total{{{labels}}} {value / _UNIT[quantity]} {stamp}"
        for name in [name for name, seen in books.last_seen.items() if at - seen > GRACE]:
            for quantity in _NAME:
                books.counters.pop((name, quantity), None)
            books.last_seen.pop(name)
        for tenant in TENANTS:
            if tenant.node == node and tenant.is_there(at):
                pod = f'namespace="ml",pod="{tenant.pod}",pod_uid="{tenant.begins}",label_team="{tenant.team}"'
                scraped = f'job="podgpu",instance="{node}-{books.incarnation}"'
                yield f'podgpu_pod_info{{node="{node}",{pod},{scraped}}} 1 {stamp}'


_NAME = {"busy": "busy_seconds", "energy": "energy_joules", "held": "allocated_seconds"}
_UNIT = {"busy": 1e6, "energy": 1e3, "held": 1e6}
_MODEL = {"alpha": "NVIDIA H200", "beta": "NVIDIA L40S"}
