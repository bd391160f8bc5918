"""Whether the driver's samples name a party as often as the log of context switches saw it on the card.

A sample names whoever ran last at one moment, and the moments come every 200 ms, so a program can rest around each of
them. If nobody does, each of `n` samples names a party with the chance `p` that it was on the card, and the chance that
at most `k` of them do is below exp(-n * D), where D is the divergence of k/n from p (Chernoff's bound, which also holds
where `p` changes from sample to sample). The log has every switch, so nobody can rest around it.
"""

from collections.abc import Iterable, Mapping
from math import log

from msgspec import Struct

from podgpu.ledger.cycle import Comparison, Party
from podgpu.ledger.residency import Evidence, blind_in, by_window
from podgpu.model import Sampling

SAMPLE_NS = 200_000_000
LONGEST_NS = 300_000_000
PROOF = log(1e6)  # a chance of one in a million
DOUBT = log(1e2)  # below this nothing is left of the proof
LEAST_DIFFERENCE = 0.05  # of the card's busy time; less would not be worth an accusation
MOST_CERTAIN = 0.98  # 1.3 % of the samples on an H200 named somebody else than the log


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
        # A longer one is no window of the driver's, and does not tell when the card was busy.
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
        party: Comparison(
            samples, samples * there.get(party, 0.0) / busy, min(samples, scale * named_us.get(party, 0))
        )
        for party in there.keys() | named_us.keys()
    }


class SampleCounts(Struct):
    """Comparisons of one party, added up."""

    samples: float = 0.0
    resident: float = 0.0
    named: float = 0.0

    def add(self, one: Comparison) -> None:
        self.samples += one.samples
        self.resident += one.resident
        self.named += one.named

    @property
    def evidence(self) -> float:
        """How unlikely it is that chance alone names the party so seldom, as minus the logarithm of a bound."""
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
    """Add up cycles. Whoever was not there in one was neither named nor resident."""
    found: dict[Party, SampleCounts] = {}
    total = 0.0
    for cycle in comparisons:
        samples = max((one.samples for one in cycle.values()), default=0.0)
        for party, one in cycle.items():
            (found.get(party) or found.setdefault(party, SampleCounts(samples=total))).add(one)
        for party in found.keys() - cycle.keys():
            found[party].samples += samples
        total += samples
    return found
