"""How sure a booking is: over a minute, what is proven about a container's busy time on its card, and what is likely.

    exact      it is alone on the card or on its instance, or it certainly did nothing
    bounded    the driver's log of context switches was read throughout: see `residency`
    estimated  by readings of that log at random moments (`spot_checks`), by the driver's samples (`samples`), or by
               claims, where nothing can be measured

Beside an estimate stands what needs no assumption. Where nothing but samples divides a card, that is little: who had a
process there may have had none of the card's busy time, or all of it. What is booked is never outside.

Energy is divided like busy time. A busy second of one tenant may draw more than that of another, so on a shared card
its range is a likely one, even where that of the busy time is proven.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from podgpu.ledger.cycle import CycleBooking, CycleBooks, Party, SpotCheck, TenantKey
from podgpu.ledger.samples import SampleEvidence, busy_share
from podgpu.ledger.spot_checks import FEWEST, KEPT, Estimate, are_useful, estimate
from podgpu.model import ASSUMPTIONS, BOUNDED, ESTIMATED, EXACT, Band

PERIOD_US = 60_000_000  # long enough for 300 samples
ALONE = frozenset({"exclusive", "instance"})
BY_SAMPLES = frozenset({"measured", "checked", ""})  # without a method nothing is booked: no sample named it
CHECKS, SAMPLES, CLAIMS = ASSUMPTIONS


class Extent(Struct, gc=False):
    """Sums of what something is at least and at most."""

    least: int = 0
    most: int = 0

    def add(self, least: int, most: int) -> None:
        self.least += least
        self.most += most

    def holding(self, booked: int, least: int = 0, most: int = 0) -> tuple[int, int]:
        """Return both, with something added, and wide enough for what was booked."""
        return min(self.least + least, booked), max(self.most + most, booked)


class PartyEvidence(Struct, kw_only=True):
    """One party's evidence so far. `busy` and `active` are proven, in microseconds and millijoules.

    The `likely_` ones are those of the cycles without samples. `doubts` are what the booking of any cycle rests on.
    `checks` are those of the cycles with samples in which it could have run, and `named` is its share of the samples of
    these, times their length: what happened before it came says nothing about it.
    """

    samples: SampleEvidence = field(default_factory=SampleEvidence)
    checks: list[SpotCheck] = field(default_factory=list)
    named: float = 0.0
    booked_us: int = 0
    booked_mj: int = 0
    idle_mj: int = 0
    busy: Extent = field(default_factory=Extent)
    active: Extent = field(default_factory=Extent)
    likely_busy: Extent = field(default_factory=Extent)
    likely_active: Extent = field(default_factory=Extent)
    doubts: set[str] = field(default_factory=set)

    def add(self, party: Party, booking: CycleBooking, books: CycleBooks, named_us: int) -> None:
        """`named_us` is the busy time of all samples of the cycle."""
        self.booked_us += booking.busy_us
        self.booked_mj += booking.energy_mj
        self.idle_mj += booking.idle_mj
        active_mj = booking.energy_mj - booking.idle_mj
        # A party that certainly has no process on the card did not run there.
        may_have_run = bool(booking.processes or booking.busy_us) or not books.is_watched
        if booking.method in ALONE:
            self._take(booking.busy_us, booking.busy_us, active_mj, active_mj)
            # What other instances draw cannot be told apart from what its own does.
            has_all = booking.method == "exclusive" or active_mj == books.active_mj
            self.active.add(*((active_mj, active_mj) if has_all else (0, books.active_mj)))
        elif booking.method == "resident" or booking.most_us:
            busy_us = books.busy_us or 1
            least_mj = books.active_mj * booking.least_us // busy_us
            most_mj = -(-books.active_mj * min(booking.most_us, books.busy_us) // busy_us)
            self._take(booking.least_us, booking.most_us, least_mj, most_mj)
            self.active.add(0, books.active_mj if booking.most_us else 0)
        elif booking.method in BY_SAMPLES and named_us:
            if may_have_run:
                self.busy.add(0, books.busy_us)
                self.active.add(0, books.active_mj)
                self.samples.add(booking, books, named_us)
                self.checks += books.checks
                self.named += books.named.get(party, 0.0) * books.elapsed_us
        elif may_have_run:
            shared_us, shared_mj = _shared(party, booking, books)
            self._take(0, shared_us, 0, shared_mj)
            # What clients of MPS had together is sampled; on an instance it is measured.
            if not _mig(party):
                self.busy.add(0, books.busy_us - shared_us)
            self.active.add(0, books.active_mj)
            if books.busy_us:
                self.doubts.add(SAMPLES if booking.method in BY_SAMPLES else CLAIMS)

    def _take(self, least_us: int, most_us: int, least_mj: int, most_mj: int) -> None:
        self.busy.add(least_us, most_us)
        self.likely_busy.add(least_us, most_us)
        self.likely_active.add(least_mj, most_mj)

    def estimate(self, party: Party, earlier: Sequence[SpotCheck]) -> Estimate | None:
        """Return its share of the time by checks; None if there are too few. `earlier` ones are of periods before."""
        if not self.checks:
            return None
        # A driver that logs slowly is checked seldom: then a longer time must speak for the period.
        is_enough = len(self.checks) >= FEWEST
        checks = self.checks if is_enough else [*earlier, *self.checks][-2 * FEWEST :]
        if not are_useful(checks):
            return None
        return estimate(party, checks, earlier if is_enough else (), self.named / self.samples.elapsed_us)

    def band(self, elapsed_us: int, found: Estimate | None) -> Band:
        """`found` is its share of the time by checks, where there are any. What is booked is never outside."""
        samples, doubts = self.samples, set(self.doubts)
        low, high = busy_share(found.span if found else samples.last_run(), samples.busy)
        if samples.busy_us:
            doubts.add(CHECKS if found else SAMPLES)
        likely_us = self.likely_busy.holding(
            self.booked_us, round(low * samples.elapsed_us), round(high * samples.elapsed_us)
        )
        likely_mj = self.likely_active.holding(
            self.booked_mj, self.idle_mj + samples.active(low), self.idle_mj + samples.active(high)
        )
        # What is proven cannot be less than what is likely, nor the other way round.
        least_us, most_us = self.busy.holding(self.booked_us)
        least_mj, most_mj = self.active.holding(self.booked_mj, self.idle_mj, self.idle_mj)
        is_estimate = bool(doubts) and least_us < most_us
        if not is_estimate:
            likely_us = least_us, most_us
        return Band(
            elapsed_us=elapsed_us,
            booked_us=self.booked_us,
            least_us=least_us,
            most_us=most_us,
            likely_least_us=max(likely_us[0], least_us),
            likely_most_us=min(likely_us[1], most_us),
            booked_mj=self.booked_mj,
            least_mj=least_mj,
            most_mj=most_mj,
            likely_least_mj=max(likely_mj[0], least_mj),
            likely_most_mj=min(likely_mj[1], most_mj),
            certainty=ESTIMATED if is_estimate else BOUNDED if least_us < most_us else EXACT,
            rests_on=max(doubts, key=ASSUMPTIONS.index) if is_estimate else "",
        )


class Period(Struct, kw_only=True):
    """The cycles of one card since the period began, and the checks of its log in them.

    `earlier` are the last checks of the periods before it. `is_logged` says that the log was read throughout some
    cycles.
    """

    elapsed_us: int = 0
    is_logged: bool = False
    evidence: dict[Party, PartyEvidence] = field(default_factory=dict)
    checks: list[SpotCheck] = field(default_factory=list)
    earlier: tuple[SpotCheck, ...] = ()

    def add(self, books: CycleBooks) -> None:
        self.elapsed_us += books.elapsed_us
        self.is_logged |= books.is_logged
        self.checks += books.checks
        named_us = sum(booking.named_us or 0 for booking in books.bookings.values())
        for party, booking in books.bookings.items():
            evidence = self.evidence.get(party) or self.evidence.setdefault(party, PartyEvidence())
            evidence.add(party, booking, books, named_us)
        for tenant, energy_mj in books.gone_mj.items():
            self.evidence.setdefault(tenant, PartyEvidence()).booked_mj += energy_mj

    @property
    def recent(self) -> list[SpotCheck]:
        """The checks of about the last three minutes."""
        return [*self.earlier, *self.checks]

    def kept(self) -> tuple[SpotCheck, ...]:
        """The checks that the next period begins with; none, if this one had none."""
        return tuple(self.recent[-KEPT:]) if self.checks else ()

    def whole(self) -> Band:
        """What the card itself did is measured."""
        busy_us = sum(evidence.booked_us for evidence in self.evidence.values())
        energy_mj = sum(evidence.booked_mj for evidence in self.evidence.values())
        return Band(
            elapsed_us=self.elapsed_us,
            booked_us=busy_us,
            least_us=busy_us,
            most_us=busy_us,
            likely_least_us=busy_us,
            likely_most_us=busy_us,
            booked_mj=energy_mj,
            least_mj=energy_mj,
            most_mj=energy_mj,
            likely_least_mj=energy_mj,
            likely_most_mj=energy_mj,
            certainty=EXACT,
        )

    def bands(self) -> Mapping[Party, Band]:
        """A log that is read throughout is silent when it fails, not at random: it is no check of that time."""
        return {
            party: evidence.band(self.elapsed_us, None if self.is_logged else evidence.estimate(party, self.earlier))
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
