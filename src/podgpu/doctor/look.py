"""What several checks look at: the cards that answer, what they read, whose their processes are, what is wrong."""

from collections.abc import Iterator
from math import isfinite

from podgpu.doctor.verdict import Verdict, failed, skipped, warned
from podgpu.insight.problems import CRITICAL
from podgpu.model import Card, Claim, Cluster, Holder, Problem, Reading, Snapshot
from podgpu.numbers import integer
from podgpu.views.format import problem_texts
from podgpu.views.text import line

PROFILED = "sm_active_ratio"  # reported wherever there is any profiling
NO_GPU = skipped("no GPU answers")
SECOND_HAND = skipped("the values come from a page of metrics")


def wrong(seen: Snapshot | Cluster, *kinds: str) -> Verdict | None:
    """Judge by the problems of these kinds, in the words of every screen; None if there are none."""
    if seen.insight is None:
        raise ValueError("nothing was concluded from the snapshot")
    found = [problem for problem in seen.insight.problems if problem.kind in kinds]
    return _told(found, with_node=isinstance(seen, Cluster)) if found else None


def _told(found: list[Problem], *, with_node: bool) -> Verdict:
    say = failed if any(problem.severity == CRITICAL for problem in found) else warned
    steps = dict.fromkeys(line(problem.next_step) for problem in found if problem.next_step)
    return say(" ".join(problem_texts(found, with_node=with_node)), " ".join(steps))


def answering(snapshot: Snapshot) -> list[Card]:
    return [card for card in snapshot.cards if card.fault is None]


def first_hand(snapshot: Snapshot) -> list[Card]:
    """The answering cards whose driver is asked directly: whoever can list processes asks the driver.

    A page of metrics shows only what its exporter was told to show.
    """
    return [card for card in answering(snapshot) if card.ability.sees_processes]


def holders(snapshot: Snapshot) -> list[Holder]:
    """The owner of each process on a GPU, once even if the process is on several."""
    found = {process.pid: process.holder for card in snapshot.cards for process in card.processes}
    return [holder for holder in found.values() if holder]


def claims(snapshot: Snapshot) -> Iterator[Claim]:
    for card in snapshot.cards:
        for tenant in card.tenants:
            yield from tenant.claims


def number(readings: tuple[Reading, ...], metric: str) -> float | None:
    return next((one.value for one in readings if one.metric == metric and isfinite(one.value)), None)


def named(cards: list[Card], most: int = 4) -> str:
    """Write `GPU 0, 2, 5`."""
    more = f" and {integer(len(cards) - most)} more" if len(cards) > most else ""
    return "GPU " + ", ".join(str(card.gpu.index) for card in cards[:most]) + more
