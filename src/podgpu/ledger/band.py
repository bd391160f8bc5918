"""How sure a booking is: the band in which a container's busy time on a shared card must lie.

The driver samples a card five times a second. A sample names the process that ran last and gives the busy time of the
whole card in the 200 ms before, whatever process caused it. So over a period, let `s` be the share of samples that name
a container and `y` the busy share of the card. The container was named for all of its own busy time that was sampled,
and for some of the idle time. Hence its true share lies between

    max(0, s + y - 1)  and  min(s, y)

and the sampling error is added on both sides. What is booked, s * y, lies inside. Where nothing is shared there is no
band, and where nothing was measured it is the whole of what is shared. Where the driver's log of context switches is
read, its bounds take the place of the samples': see `residency`.

All of this holds if no tenant times its work by the samples. A party that holds memory and computes on the CPU,
but is named far less often than that suggests, may do so. It can then have had all of the card's busy time, and no
other party is sure of anything. The log settles it: see `residency`.
"""

from collections.abc import Mapping
from math import sqrt

from msgspec import Struct, field

from podgpu.ledger.cycle import CycleBooking, CycleBooks, Party, TenantKey
from podgpu.model import Band

PERIOD_US = 60_000_000  # long enough for 300 samples
SAMPLE_US = 200_000  # between two samples of the driver
DEVIATIONS = 2  # of chance on each side: 95 % of periods
NEVER_NAMED = 3  # a party that none of n samples names has a share below 3 / n in 95 % of periods
SCATTER = 1.4  # samples of real tenants scatter this much more than independent ones, see docs/attribution.md
EXACT = frozenset({"exclusive", "instance"})
LEAST_CPU = 0.02  # of a core; a party that uses less waits for work
SUSPICIOUS = 0.25  # named for less than this part of what its CPU time suggests
HOST = "host"  # the node's own processes are not suspected
BY_SAMPLES = frozenset({"measured", ""})  # without a method nothing is booked: no sample named it


class SampleEvidence(Struct, kw_only=True):
    """What samples say about one party, over the cycles in which it could have run: it had processes on the card.

    `cpu_us` is the CPU time of its processes, `holds` whether they held memory. `evades` and `is_honest` are what
    the log found of it, if it was read for a while.
    """

    taken: float = 0.0
    named: float = 0.0
    elapsed_us: int = 0
    busy_us: int = 0
    active_mj: int = 0
    cpu_us: int = 0
    holds: bool = False
    evades: bool = False
    is_honest: bool = False

    def add(self, booking: CycleBooking, books: CycleBooks, named_us: int) -> None:
        taken, sampling = books.elapsed_us / SAMPLE_US, booking.sampling
        self.taken += taken
        self.named += taken * (booking.named_us or 0) / named_us
        self.elapsed_us += books.elapsed_us
        self.busy_us += books.busy_us
        self.active_mj += books.active_mj
        self.cpu_us += booking.cpu_us or 0
        self.holds |= bool(booking.memory_bytes)
        self.evades |= sampling is not None and sampling.evades
        self.is_honest |= sampling is not None and not sampling.evades

    @property
    def busy(self) -> float:
        """The share of the elapsed time in which the card was busy."""
        return min(self.busy_us / self.elapsed_us, 1.0) if self.elapsed_us else 0.0

    @property
    def cpu(self) -> float:
        """Its CPU time as a part of the elapsed time; more than one core counts as one."""
        return min(self.cpu_us / self.elapsed_us, 1.0) if self.elapsed_us else 0.0

    def share(self) -> tuple[float, float]:
        """Return for which share of the elapsed time the party was busy, at least and at most."""
        if not self.taken or not self.elapsed_us:
            return 0.0, 0.0
        least, most = self._named()
        return max(0.0, least + self.busy - 1), min(most, self.busy)

    def hides(self, all_cpu: float) -> bool:
        """Whether it may time its work by the samples: they name it far less often than its CPU time suggests."""
        if self.evades:
            return True
        if self.is_honest or not self.holds or not self.taken or self.cpu < LEAST_CPU:
            return False
        return self._named()[1] < SUSPICIOUS * self.cpu / all_cpu

    def active(self, share: float) -> int:
        """The active energy that goes with a share of the elapsed time."""
        return round(self.active_mj * min(share * self.elapsed_us / self.busy_us, 1.0)) if self.busy_us else 0

    def _named(self) -> tuple[float, float]:
        """Return which share of the time it was the one that ran last, at least and at most, by Wilson's score."""
        named = min(self.named / self.taken, 1.0)
        if not named:
            return 0.0, min(NEVER_NAMED / self.taken, 1.0)
        spread = SCATTER * DEVIATIONS
        weight = spread * spread / self.taken
        middle = named + weight / 2
        error = spread * sqrt((named * (1 - named) + weight / 4) / self.taken)
        return (middle - error) / (1 + weight), (middle + error) / (1 + weight)


class PartyEvidence(Struct, kw_only=True):
    """One party's evidence so far: by samples, and `least` and `most` of the cycles that had none."""

    samples: SampleEvidence = field(default_factory=SampleEvidence)
    booked_us: int = 0
    booked_mj: int = 0
    idle_mj: int = 0
    least_us: int = 0
    most_us: int = 0
    least_mj: int = 0
    most_mj: int = 0

    def add(self, party: Party, booking: CycleBooking, books: CycleBooks, named_us: int) -> None:
        """`named_us` is the busy time of all samples of the cycle."""
        self.booked_us += booking.busy_us
        self.booked_mj += booking.energy_mj
        self.idle_mj += booking.idle_mj
        # A party that certainly has no process on the card did not run there.
        may_have_run = bool(booking.processes) or not books.is_watched
        active_mj = booking.energy_mj - booking.idle_mj
        if booking.method in BY_SAMPLES and named_us:
            if may_have_run:
                self.samples.add(booking, books, named_us)
        elif booking.method in EXACT:
            self._widen(booking.busy_us, booking.busy_us, active_mj, active_mj)
        elif booking.method == "resident" or booking.most_us:
            busy_us = books.busy_us or 1
            least_mj = books.active_mj * booking.least_us // busy_us
            most_mj = -(-books.active_mj * min(booking.most_us, books.busy_us) // busy_us)
            self._widen(booking.least_us, booking.most_us, least_mj, most_mj)
        elif may_have_run:
            shared_us, shared_mj = _shared(party, booking, books)
            self._widen(0, shared_us, 0, shared_mj)

    def _widen(self, least_us: int, most_us: int, least_mj: int, most_mj: int) -> None:
        self.least_us += least_us
        self.most_us += most_us
        self.least_mj += least_mj
        self.most_mj += most_mj

    def band(self, elapsed_us: int, *, hides: bool, is_beside: bool) -> Band:
        """What is booked is never outside: shares of the cycles may differ from the period's.

        A party that `hides` from the samples can have had everything, and one that `is_beside` it nothing.
        """
        samples = self.samples
        least, most = samples.share()
        if hides:
            most = samples.busy
        if is_beside:
            least = 0.0
        return Band(
            elapsed_us=elapsed_us,
            booked_us=self.booked_us,
            least_us=min(self.least_us + round(least * samples.elapsed_us), self.booked_us),
            most_us=max(self.most_us + round(most * samples.elapsed_us), self.booked_us),
            booked_mj=self.booked_mj,
            least_mj=min(self.idle_mj + self.least_mj + samples.active(least), self.booked_mj),
            most_mj=max(self.idle_mj + self.most_mj + samples.active(most), self.booked_mj),
            undersampled=hides,
        )


class Period(Struct, kw_only=True):
    """The cycles of one card since the period began. `is_logged` says that the log was read in some of them."""

    elapsed_us: int = 0
    is_logged: bool = False
    evidence: dict[Party, PartyEvidence] = field(default_factory=dict)

    def add(self, books: CycleBooks) -> None:
        self.elapsed_us += books.elapsed_us
        self.is_logged |= books.is_logged
        named_us = sum(booking.named_us or 0 for booking in books.bookings.values())
        for party, booking in books.bookings.items():
            evidence = self.evidence.get(party) or self.evidence.setdefault(party, PartyEvidence())
            evidence.add(party, booking, books, named_us)
        for tenant, energy_mj in books.gone_mj.items():
            self.evidence.setdefault(tenant, PartyEvidence()).booked_mj += energy_mj

    def mark_evaders(self, books: CycleBooks) -> None:
        """Let what a later cycle has found of the parties count for these cycles."""
        for party, booking in books.bookings.items():
            if booking.sampling is not None and booking.sampling.evades and party in self.evidence:
                self.evidence[party].samples.evades = True

    def whole(self) -> Band:
        """What the card itself did is sure."""
        busy_us = sum(evidence.booked_us for evidence in self.evidence.values())
        energy_mj = sum(evidence.booked_mj for evidence in self.evidence.values())
        return Band(
            elapsed_us=self.elapsed_us,
            booked_us=busy_us,
            least_us=busy_us,
            most_us=busy_us,
            booked_mj=energy_mj,
            least_mj=energy_mj,
            most_mj=energy_mj,
        )

    def bands(self) -> Mapping[Party, Band]:
        cpu = sum(evidence.samples.cpu for evidence in self.evidence.values())
        hiding = {party for party, evidence in self.evidence.items() if party != HOST and evidence.samples.hides(cpu)}
        return {
            party: evidence.band(self.elapsed_us, hides=party in hiding, is_beside=bool(hiding - {party}))
            for party, evidence in self.evidence.items()
        }


def _shared(party: Party, booking: CycleBooking, books: CycleBooks) -> tuple[int, int]:
    """Return busy time and active energy of the party and all that cannot be told apart from it.

    They are on its instance, under its MPS server or, where nothing at all was measured, on the card.
    """
    if booking.method != "weighted":
        return books.busy_us, books.active_mj
    beside = [
        other
        for neighbour, other in books.bookings.items()
        if other.method == "weighted" and _mig(neighbour) == _mig(party)
    ]
    return sum(other.busy_us for other in beside), sum(other.energy_mj - other.idle_mj for other in beside)


def _mig(party: Party) -> str:
    return party.mig if isinstance(party, TenantKey) else ""
