"""What the driver's samples say about one party of a shared card over a period: its likely share of the time.

The driver samples a card five times a second. A sample names the process that ran last and gives the busy time of the
whole card in the 200 ms before, whatever process caused it. So over a period, let `s` be the share of samples that name
a party and `y` the busy share of the card. The party was named for all of its own busy time that was sampled, and for
some of the idle time. Hence its true share likely lies between

    max(0, s + y - 1)  and  min(s, y)

and the sampling error is added on both sides. That is a likely range and no bound: the samples come every 200.0 ms by
a clock that does not drift. Work that keeps time with them, such as a camera's at 25 frames a second, meets every
sample in the same phase, and is named always, never, or as often as it happens. Nothing in the samples themselves shows
that: see `spot_checks`.
"""

from math import sqrt

from msgspec import Struct, field

from podgpu.ledger.cycle import CycleBooking, CycleBooks

SAMPLE_US = 200_000  # between two samples of the driver
DEVIATIONS = 2  # of chance on each side: 95 % of periods
NEVER_NAMED = 3  # a party that none of n samples names has a share below 3 / n in 95 % of periods
SCATTER = 1.4  # samples of real tenants scatter this much more than independent ones, see docs/attribution.md
BATCH = 25.0  # samples, five seconds of them; work that beats slowly with the samples differs between batches
FEWEST_BATCHES = 4


class SampleEvidence(Struct, kw_only=True):
    """Samples over the cycles in which a party could have run: it had processes on the card.

    `batches` are the samples of a few seconds each: how many were taken, and how many named it.
    """

    taken: float = 0.0
    named: float = 0.0
    elapsed_us: int = 0
    busy_us: int = 0
    active_mj: int = 0
    batches: list[tuple[float, float]] = field(default_factory=list)

    def add(self, booking: CycleBooking, books: CycleBooks, named_us: int) -> None:
        """Add a cycle. `named_us` is the busy time of all its samples."""
        taken = books.elapsed_us / SAMPLE_US
        named = taken * (booking.named_us or 0) / named_us
        self.taken += taken
        self.named += named
        self.elapsed_us += books.elapsed_us
        self.busy_us += books.busy_us
        self.active_mj += books.active_mj
        if self.batches and self.batches[-1][0] < BATCH:
            before = self.batches.pop()
            self.batches.append((before[0] + taken, before[1] + named))
        else:
            self.batches.append((taken, named))

    @property
    def busy(self) -> float:
        """The share of the elapsed time in which the card was busy."""
        return min(self.busy_us / self.elapsed_us, 1.0) if self.elapsed_us else 0.0

    def last_run(self) -> tuple[float, float]:
        """Return for which share of the time it was likely the one that ran last, by Wilson's score."""
        if not self.taken:
            return 0.0, 0.0
        named = min(self.named / self.taken, 1.0)
        if not named:
            return 0.0, min(NEVER_NAMED / self.taken, 1.0)
        weight = DEVIATIONS * DEVIATIONS * self._scatter(named) / self.taken
        middle = named + weight / 2
        error = sqrt(weight * (named * (1 - named) + weight / 4))
        return (middle - error) / (1 + weight), (middle + error) / (1 + weight)

    def _scatter(self, named: float) -> float:
        """How much larger the variance of the samples is than that of independent ones: by their batches, if more."""
        usual = SCATTER * SCATTER
        variance, number = named * (1 - named), len(self.batches)
        if number < FEWEST_BATCHES or not variance:
            return usual
        between = sum(taken * (part / taken - named) ** 2 for taken, part in self.batches)
        return max(usual, between / (number - 1) / variance)

    def active(self, share: float) -> int:
        """The active energy that goes with a share of the elapsed time."""
        return round(self.active_mj * min(share * self.elapsed_us / self.busy_us, 1.0)) if self.busy_us else 0


def busy_share(last_run: tuple[float, float], busy: float) -> tuple[float, float]:
    """Return the least and the greatest busy share of one that ran last for such a share, on a card so busy."""
    low, high = last_run
    return max(0.0, low + busy - 1), min(high, busy)
