"""Whose word about a node counts. A target is what a store scraped: it is known by its `job` and its `instance`.

Anybody whose page is scraped can write `podgpu_…` series about any node, so a name in a label proves nothing. The
labels of the target itself cannot be forged: a scrape with `honor_labels: false` keeps them. With `--prometheus.job`,
the series of those jobs alone are read. Without it, what two targets say of a node at the same time counts only if
both say the same.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from statistics import median
from typing import NamedTuple, TypeVar

from podgpu.catalog.row import Scope
from podgpu.cluster.store.response import own_labels

K = TypeVar("K", bound=Hashable)

# An agent that is back after three scrapes, or after a minute, was not away: it was updated.
SCRAPES_OF_A_RESTART, RESTART_SECONDS = 3, 60.0
# By how much the clocks of two scrapers may differ.
CLOCK_SECONDS = 60.0
MOST_WATTS = 3000.0  # no card draws more
# More than so many targets of one node are not compared with one another: that they are so many is disputed.
MOST_TARGETS = 32
MOST_NAMED = 3
_OWN = frozenset(name for scope in Scope for name in scope.labels) | {"reason", "end", "bound", "__name__"}
GIVE_JOB = "say with --prometheus.job which scrape job is that of podgpu's agents"
CHOOSE = "choose podgpu's agents by their own labels, such as --prometheus.selector='namespace=\"podgpu\"'"


class ScrapeTarget(NamedTuple):
    job: str
    instance: str

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> "ScrapeTarget":
        """By the labels as the store has them: `exported_job` is what the page itself said."""
        return _target(labels.get("job", ""), labels.get("instance", ""))

    def __str__(self) -> str:
        return f"{self.instance or 'no instance'} of job {self.job or '(none)'}"


_target = lru_cache(maxsize=1 << 16)(ScrapeTarget)  # one object for the millions of series that name it

Replica = frozenset[tuple[str, str]]  # one of several copies of a node's series, by the labels that scraping adds


def advice(targets: Iterable[ScrapeTarget]) -> str:
    """Say how to believe one side alone."""
    return GIVE_JOB if len({target.job for target in targets}) > 1 else CHOOSE


def several(targets: Collection[ScrapeTarget]) -> str:
    """Name them, or the first few of a crowd."""
    if len(targets) <= MOST_NAMED:
        return " and ".join(map(str, targets))
    named = ", ".join(map(str, islice(targets, MOST_NAMED)))
    return f"{named} and {len(targets) - MOST_NAMED}{' or more' if len(targets) >= MOST_TARGETS else ''} others"


def replica_of(labels: Mapping[str, str]) -> Replica:
    return frozenset(
        (name, text) for name, text in labels.items() if name not in _OWN and not name.startswith("exported_")
    )


class NodeTargets:
    """The targets that have shown cards of each node. What another target counts of a node is ignored, and named."""

    def __init__(self) -> None:
        self._nodes: dict[ScrapeTarget, set[str]] = defaultdict(set)
        self.ignored: set[str] = set()  # jobs

    def note(self, series: Iterable[Mapping[str, str]]) -> None:
        """Take the labels of `podgpu_gpu_info`, which every agent has."""
        for labels in series:
            if node := own_labels(labels).get("node"):
                self._nodes[ScrapeTarget.of(labels)].add(node)

    def is_believed(self, target: ScrapeTarget, node: str) -> bool:
        if node in self._nodes.get(target, ()):
            return True
        self.ignored.add(target.job)
        return False

    @property
    def jobs(self) -> dict[str, set[str]]:
        """The nodes that each job speaks for."""
        nodes: dict[str, set[str]] = defaultdict(set)
        for target, own in self._nodes.items():
            nodes[target.job] |= own
        return {job: nodes[job] for job in sorted(nodes)}


def longest_pause(interval: float) -> float:
    """Return for how long a card that is scraped at this interval may be missing without being unseen."""
    return max(SCRAPES_OF_A_RESTART * interval, RESTART_SECONDS)


class SharedTime(NamedTuple):
    """From when to when two targets were scraped side by side. For a pause before and after, they may have been."""

    start: float
    end: float
    pause: float


def together(some: Sequence[float], others: Sequence[float]) -> SharedTime | None:
    """Return when two targets were scraped side by side, by the times of their scrapes in order.

    An agent that takes over from another is there beside it for a moment, or in a gap of its scrapes: that is None.
    """
    beside = [*_amid(some, others), *_amid(others, some)]
    pause = longest_pause(max(_interval(some), _interval(others)))
    if not beside or max(beside) - min(beside) <= pause:
        return None
    return SharedTime(min(beside), max(beside), pause)


def _amid(times: Sequence[float], others: Sequence[float]) -> list[float]:
    """Return those of the times that lie between two scrapes of the others that follow one another."""
    pause, found = longest_pause(_interval(others)), []
    for at in times:
        after = bisect_right(others, at)
        if 0 < after < len(others) and others[after] - others[after - 1] <= pause:
            found.append(at)
    return found


def _interval(times: Sequence[float]) -> float:
    return median(later - earlier for earlier, later in pairwise(times)) if len(times) > 1 else 0.0


Counted = Mapping[float, Mapping[K, float]]  # when, and the counters


def agree(some: Counted[K], others: Counted[K], rates: Mapping[K, float]) -> bool:
    """Whether both can be scrapes of one agent: each counter is where the other scrapes have it.

    `rates` has what a counter can grow by in a second. A counter may have been anywhere between two scrapes, and
    clocks differ. What cannot be told apart from the truth by this is no further from it than that.
    """
    return _follows(some, others, rates) and _follows(others, some, rates)


def _follows(some: Counted[K], others: Counted[K], rates: Mapping[K, float]) -> bool:
    known: dict[K, list[float]] = defaultdict(list)
    for at in sorted(others):
        for counter in others[at]:
            known[counter].append(at)
    pause = 2 * longest_pause(max(_interval(sorted(some)), _interval(sorted(others))))
    for at, values in some.items():
        for counter, value in values.items():
            times = known.get(counter, ())
            after = bisect_left(times, at)
            beside = [each for each in times[max(after - 1, 0) : after + 1] if abs(each - at) <= pause]
            # A counter that the other scrapes do not have yet, or no longer, has just begun.
            expected = [(abs(each - at), others[each][counter]) for each in beside] or [(pause, 0.0)]
            rate = rates[counter]
            if all(abs(value - other) > (seconds + CLOCK_SECONDS) * rate for seconds, other in expected):
                return False
    return True
