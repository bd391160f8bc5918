"""What the driver's log of context switches proves where it is read throughout: who was busy on a shared card.

The log says whose context was on the card, not whether it worked: a context whose work is done stays until another one
needs the card. So in a window with busy time `y`, a party that was on the card for `r` and all others for `q` was busy
for

    max(0, y - q)  at least, and  min(r, y)  at most.

A party that was not on the card did nothing, and one that was there alone did everything. What is booked in between
follows from how a slice begins: a context comes onto the card for work, so its first part is busy. Every slice of a
window is taken to have been busy for the same time, the shorter ones throughout. A slice may work, rest and work again
while no other context wants the card, so the bounds do not assume that its busy time is one piece.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from podgpu.ledger.cycle import Party, SpotCheck, WindowBooking
from podgpu.ledger.spot_checks import shares
from podgpu.model import BusyWindow, Slice, Span, SwitchLog

Piece = tuple[Party, int]  # who was on the card, and for how many nanoseconds
LONGEST_NS = 300_000_000


class Stay(Struct, gc=False):
    """What is proven about one party: its busy time in nanoseconds, and what is booked."""

    least_ns: int = 0
    most_ns: int = 0
    booked_ns: int = 0


class Evidence(Struct, frozen=True, kw_only=True, gc=False):
    """What the log says about one cycle of a card: windows, slices that cover them, and where it is blind."""

    windows: tuple[BusyWindow, ...] = ()
    slices: tuple[Slice, ...] = ()
    blind: tuple[Span, ...] = ()
    log: SwitchLog | None = None


class Residency(Struct, frozen=True, kw_only=True, gc=False):
    """The card's busy time: `busy_ns` was seen by the log and is divided among `stays`, `blind_ns` was not."""

    stays: dict[Party, Stay] = field(default_factory=dict)
    busy_ns: int = 0
    blind_ns: int = 0
    windows: tuple[WindowBooking, ...] = ()


def residency(evidence: Evidence, parties: Mapping[int, Party]) -> Residency:
    """Divide the busy time of the windows. A process that is none of the parties' is unknown."""
    stays: dict[Party, Stay] = {}
    divided: list[WindowBooking] = []
    busy_ns = blind_ns = 0
    for window, slices in by_window(evidence.windows, evidence.slices):
        pieces = [(parties.get(pid, "unknown"), nanoseconds) for pid, nanoseconds in slices]
        resident_ns = sum(nanoseconds for _, nanoseconds in pieces)
        if not resident_ns or blind_in(window, evidence.blind):
            blind_ns += window.busy_ns
            continue
        # Some of the switching counts as busy. It is divided like the rest of the window.
        seen_ns = min(window.busy_ns, resident_ns)
        busy_ns += seen_ns
        booked = _add(stays, pieces, resident_ns, seen_ns)
        divided.append(WindowBooking(window, resident_ns, booked))
    return Residency(stays=stays, busy_ns=busy_ns, blind_ns=blind_ns, windows=tuple(divided))


def resident_us(log: SwitchLog, parties: Mapping[int, Party]) -> dict[Party, int]:
    """Return how long each party was on the card, whether it worked or not."""
    found: dict[Party, int] = {}
    for piece in log.slices:
        party = parties.get(piece.pid, "unknown")
        found[party] = found.get(party, 0) + piece.end_ns - piece.begin_ns
    return {party: nanoseconds // 1000 for party, nanoseconds in found.items()}


def _add(stays: dict[Party, Stay], pieces: Sequence[Piece], resident_ns: int, busy_ns: int) -> Mapping[Party, int]:
    """Add a window, and return what is booked of it."""
    there: dict[Party, int] = {}
    for party, nanoseconds in pieces:
        there[party] = there.get(party, 0) + nanoseconds
    booked = filled(busy_ns, pieces)
    for party, own_ns in there.items():
        stay = stays.get(party) or stays.setdefault(party, Stay())
        stay.least_ns += max(0, busy_ns - (resident_ns - own_ns))
        stay.most_ns += min(own_ns, busy_ns)
        stay.booked_ns += booked[party]
    return booked


def filled(busy_ns: int, pieces: Sequence[Piece]) -> dict[Party, int]:
    """Fill all pieces from their beginning to the same level, until the busy time is used up."""
    left, booked = busy_ns, {party: 0 for party, _ in pieces}
    by_length = sorted(pieces, key=lambda piece: (piece[1], str(piece[0])))
    for number, (party, nanoseconds) in enumerate(by_length):
        part = min(nanoseconds, left // (len(by_length) - number))
        booked[party] += part
        left -= part
    return booked


def blind_in(window: BusyWindow, blind: Iterable[Span]) -> bool:
    """Whether the log misses any part of the window."""
    return any(_overlap(window, span) for span in blind)


def by_window(
    windows: Iterable[BusyWindow], slices: Sequence[Slice]
) -> Iterator[tuple[BusyWindow, list[tuple[int, int]]]]:
    """Cut the slices by windows. Both are in order; windows may touch or overlap a little."""
    first = 0
    for window in windows:
        while first < len(slices) and slices[first].end_ns <= window.begin_ns:
            first += 1
        inside = []
        for place in range(first, len(slices)):
            if slices[place].begin_ns >= window.end_ns:
                break
            if nanoseconds := _overlap(window, slices[place]):
                inside.append((slices[place].pid, nanoseconds))
        yield window, inside


def _overlap(window: BusyWindow, other: Slice | Span) -> int:
    return max(0, min(window.end_ns, other.end_ns) - max(window.begin_ns, other.begin_ns))


def compared(evidence: Evidence, parties: Mapping[int, Party], named: Mapping[Party, float]) -> SpotCheck | None:
    """Compare the samples of one cycle with its log. They are weighted by how busy the card was, so time on it is too.

    None, if the log says nothing about the driver's windows.
    """
    busy_ns = 0
    there: dict[Party, float] = {}
    for window, slices in by_window(evidence.windows, evidence.slices):
        resident_ns = sum(nanoseconds for _, nanoseconds in slices)
        length = window.end_ns - window.begin_ns
        # A longer window does not come from the driver, and does not show when the card was busy.
        if not resident_ns or length > LONGEST_NS or blind_in(window, evidence.blind):
            continue
        busy_ns += window.busy_ns
        for pid, nanoseconds in slices:
            party = parties.get(pid, "unknown")
            there[party] = there.get(party, 0.0) + window.busy_ns * nanoseconds / resident_ns
    if not named or not busy_ns:
        return None
    seconds = busy_ns / 1e9
    return SpotCheck(seconds=seconds, busy_seconds=seconds, resident=shares(there), named=named)
