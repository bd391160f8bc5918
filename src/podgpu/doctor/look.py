"""What several checks look at: the cards that answer, what they read, and whose their processes are."""

from collections.abc import Iterator
from math import isfinite

from podgpu.doctor.verdict import skipped
from podgpu.model import Card, Claim, Holder, Reading, Snapshot
from podgpu.numbers import integer

PROFILED = "sm_active_ratio"  # reported wherever there is any profiling
NO_GPU = skipped("no GPU answers")
SECOND_HAND = skipped("the values come from a page of metrics")


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
