"""Who makes room when all places are taken."""

from collections import Counter
from collections.abc import Collection
from typing import Protocol

from podgpu.serve.entry.origin import Standing

SCRAPERS = (
    8  # connections of one origin that are spared because they scrape; a few servers may share an address
)

_SILENT, _STALLED, _BETWEEN = range(3)


class Guest(Protocol):
    """A connection, as far as others know it.

    `quiet_since` is None while a request is in progress, and `stalled_since` unless its answer is not being read.
    `is_proven` is whether it ever sent a whole request, `scraped_at` when it first got a page of metrics.
    """

    address: str
    is_proven: bool
    scraped_at: float | None

    @property
    def quiet_since(self) -> float | None: ...

    @property
    def stalled_since(self) -> float | None: ...

    def check(self, now: float) -> None: ...

    def abort(self) -> None: ...


def leaver(
    guests: Collection[Guest], newcomer: str, now: float, settle_seconds: float, standing: Standing
) -> Guest | None:
    """Choose who leaves: one of the origin that has most connections, and one that scrapes last of all.

    Of an origin, the silent leave before those that do not read, and these before those between two requests. The
    silent need not leave at once, unless their origin has more connections than the newcomer's.
    """
    counts = Counter(guest.address for guest in guests)
    spared = _spared(guests)

    def may_stay(guest: Guest, rank: int, since: float) -> bool:
        is_larger = guest.address != newcomer and counts[guest.address] > counts[newcomer]
        return rank != _BETWEEN and now - since < settle_seconds and not is_larger

    best: tuple[tuple[float, ...], Guest] | None = None
    for guest in guests:
        rank, since = _idleness(guest)
        if since is None or may_stay(guest, rank, since):
            continue
        order = since if rank else -since  # of the silent the youngest, of others the longest idle
        is_good = standing.is_good(guest.address, now)
        key = (guest in spared, -counts[guest.address], is_good, rank, order)
        if best is None or key < best[0]:
            best = key, guest
    return best[1] if best else None


def _spared(guests: Collection[Guest]) -> set[Guest]:
    """Return those that have scraped for longest, a few of each origin: else a crowd would only have to scrape."""
    spared: set[Guest] = set()
    numbers: Counter[str] = Counter()
    scrapers = [(guest.scraped_at, guest) for guest in guests if guest.scraped_at is not None]
    for _, guest in sorted(scrapers, key=lambda pair: pair[0]):
        numbers[guest.address] += 1
        if numbers[guest.address] <= SCRAPERS:
            spared.add(guest)
    return spared


def _idleness(guest: Guest) -> tuple[int, float | None]:
    if guest.stalled_since is not None:
        return _STALLED, guest.stalled_since
    return (_BETWEEN if guest.is_proven else _SILENT), guest.quiet_since
