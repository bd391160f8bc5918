"""What the driver's log of context switches proves: who was busy on a shared card, and whether the samples agree.

The log says whose context was on the card, not whether it worked: a context whose work is done stays until another one
needs the card. So in a window with busy time `y`, a party that was on the card for `r` and all others for `q` was busy
for

    max(0, y - q)  at least, and  min(r, y)  at most.

A party that was not on the card did nothing, and one that was there alone did everything. What is booked in between
follows from how a slice begins: a context comes onto the card for work, so its first part is busy. Every slice of a
window is taken to have been busy for the same time, the shorter ones throughout. A slice may work, rest and work again
while no other context wants the card, so the bounds do not assume that its busy time is one piece.

A sample of the driver names the process that ran last at one moment, and the moments come every 200 ms, so a program
can rest around each of them. If none does, each of `n` samples names a party with the chance `p` that it was on the
card, and the chance that at most `k` of them do is below exp(-n * D), where D is the divergence of k/n from p
(Chernoff's bound, which also holds where `p` changes from sample to sample). The log has every switch, so no program
can rest around it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log

from msgspec import Struct, field

from podgpu.ledger.cycle import Comparison, Party, WindowBooking
from podgpu.model import BusyWindow, Sampling, Slice, Span, SwitchLog

Piece = tuple[Party, int]  # who was on the card, and for how many nanoseconds
SAMPLE_NS = 200_000_000
LONGEST_NS = 300_000_000
PROOF = log(1e6)  # a chance of one in a million
DOUBT = log(1e2)  # with less, nothing is left of a proof
LEAST_DIFFERENCE = 0.05  # of the card's busy time; less would not be worth an accusation
MOST_CERTAIN = 0.98  # 1.3 % of the samples on an H200 named another process than the log


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


def compared(
    evidence: Evidence, parties: Mapping[int, Party], named_us: Mapping[Party, int], elapsed_us: int
) -> dict[Party, Comparison]:
    """Compare one cycle. Samples are weighted by how busy the card was, so time on the card is too."""
    named = sum(named_us.values())
    busy = squares = covered_ns = 0.0
    there: dict[Party, float] = {}
    for window, slices in by_window(evidence.windows, evidence.slices):
        resident_ns = sum(nanoseconds for _, nanoseconds in slices)
        length = window.end_ns - window.begin_ns
        # A longer window does not come from the driver, and does not show when the card was busy.
        if not resident_ns or length > LONGEST_NS or blind_in(window, evidence.blind):
            continue
        covered_ns += length
        busy += window.busy_ns
        squares += window.busy_ns**2 * SAMPLE_NS / length
        for pid, nanoseconds in slices:
            party = parties.get(pid, "unknown")
            there[party] = there.get(party, 0.0) + window.busy_ns * nanoseconds / resident_ns
    if not named or not busy:
        return {}
    samples = busy**2 / squares
    # Samples from outside the time that the log covers count too, so that they never make an evader.
    scale = samples * max(1.0, 1000 * elapsed_us / covered_ns) / named
    return {
        party: Comparison(samples, samples * there.get(party, 0.0) / busy, min(samples, scale * named_us.get(party, 0)))
        for party in there.keys() | named_us.keys()
    }


class SampleCounts(Struct):
    """Comparisons of one party, added up."""

    samples: float = 0.0
    resident: float = 0.0
    named: float = 0.0

    def add(self, comparison: Comparison) -> None:
        self.samples += comparison.samples
        self.resident += comparison.resident
        self.named += comparison.named

    @property
    def evidence(self) -> float:
        """How unlikely it is that samples name the party so rarely by chance, as minus the logarithm of a bound."""
        if not self.samples:
            return 0.0
        expected, named = min(self.resident / self.samples, MOST_CERTAIN), self.named / self.samples
        if named >= expected:
            return 0.0
        never = (1 - named) * log((1 - named) / (1 - expected))
        return self.samples * (never + (named * log(named / expected) if named else 0.0))

    @property
    def differs(self) -> bool:
        """Whether it is named so much less often that it matters."""
        return self.resident - self.named >= LEAST_DIFFERENCE * self.samples > 0

    @property
    def is_proof(self) -> bool:
        return self.differs and self.evidence >= PROOF

    def shown(self, *, evades: bool) -> Sampling:
        return Sampling(
            samples=round(self.samples),
            named_ratio=self.named / self.samples if self.samples else 0.0,
            resident_ratio=self.resident / self.samples if self.samples else 0.0,
            evades=evades,
        )


def tallies(comparisons: Iterable[Mapping[Party, Comparison]]) -> dict[Party, SampleCounts]:
    """Add up cycles. A party that is missing in a cycle was neither named nor resident."""
    found: dict[Party, SampleCounts] = {}
    total = 0.0
    for cycle in comparisons:
        samples = max((comparison.samples for comparison in cycle.values()), default=0.0)
        for party, comparison in cycle.items():
            (found.get(party) or found.setdefault(party, SampleCounts(samples=total))).add(comparison)
        for party in found.keys() - cycle.keys():
            found[party].samples += samples
        total += samples
    return found
