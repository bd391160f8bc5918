"""Who makes room when all places are taken."""

from collections import Counter
from collections.abc import Collection
from typing import Protocol

from podgpu.serve.entry.origin import Standing


class Guest(Protocol):
    """A connection, as far as others know it.

    `quiet_since` is None while a request is in progress, and `stalled_since` unless its answer is not being read.
    `is_proven` is whether it ever sent a whole request.
    """

    address: str
    is_proven: bool

    @property
    def quiet_since(self) -> float | None: ...

    @property
    def stalled_since(self) -> float | None: ...

    def check(self, now: float) -> None: ...

    def abort(self) -> None: ...


def leaver(
    guests: Collection[Guest], newcomer: str, now: float, settle_seconds: float, standing: Standing
) -> Guest | None:
    """Choose who leaves: the silent before those that do not read, and these before those between two requests.

    Nobody has to who has only just fallen silent, unless its origin has more than half of the places.
    """
    counts = Counter(guest.address for guest in guests)

    def may_stay(guest: Guest, since: float) -> bool:
        is_crowding = guest.address != newcomer and counts[guest.address] * 2 > len(guests)
        return now - since < settle_seconds and not is_crowding

    best: tuple[tuple[float, ...], Guest] | None = None
    for guest in guests:
        rank, since = _idleness(guest)
        if since is None or may_stay(guest, since):
            continue
        order = since if rank else -since  # of the silent the youngest, of others the longest idle
        key = (rank, standing.is_good(guest.address, now), -counts[guest.address], order)
        if best is None or key < best[0]:
            best = key, guest
    return best[1] if best else None


def _idleness(guest: Guest) -> tuple[int, float | None]:
    if guest.stalled_since is not None:
        return 1, guest.stalled_since
    return (2 if guest.is_proven else 0), guest.quiet_since
