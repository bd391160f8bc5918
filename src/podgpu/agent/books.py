"""The books over time. Counters only grow; those of a container are kept for a while after it ended."""

from collections.abc import Iterable, Iterator
from operator import itemgetter

from msgspec import Struct, field
from msgspec.structs import fields, replace

from podgpu.ledger.band import PERIOD_US, Period
from podgpu.ledger.cycle import CycleBooking, CycleBooks, Interval, Party, TenantKey
from podgpu.ledger.lanes import LaneRecorder
from podgpu.ledger.spot_checks import Correction, corrections, judged
from podgpu.ledger.usage import nameless_pods
from podgpu.model import ENDED, Band, Lanes
from podgpu.model.kube import grouped

GRACE_SECONDS = 300.0  # enough for the last increase to be scraped
MOST_ENDED = 5000
MINUTE_US = 60_000_000
SWITCHING_MINUTES = 5  # of which the most counts, so that a problem does not come and go with each minute


class Totals(Struct, gc=False):
    """`booking` is the party's booking in this cycle; None for a party that ended, or whose card is silent.

    `moved_mj` is its part of what the card's energy counter moved by the last time it moved. `is_bookable` is false for
    a party that was never booked anything because it holds something of unknown size. `unsized_us` counts whole minutes
    of that, and `pending_us` is how long it has been so since the last of them. `unmeasured_us` is the part of
    `allocated_us` in which nobody knows whether it used what it held. `settled_busy_us` is what was booked in the
    periods that are over, as the ranges beside it are.
    """

    busy_us: int = 0
    energy_mj: int = 0
    allocated_us: int = 0
    unsized_us: int = 0
    unmeasured_us: int = 0
    pending_us: int = 0
    seen_at: float = 0.0
    last_active_at: float | None = None
    method: str = ""
    moved_mj: int | None = None
    is_bookable: bool = True
    settled_busy_us: int = 0
    least_busy_us: int = 0
    most_busy_us: int = 0
    least_energy_mj: int = 0
    most_energy_mj: int = 0
    likely_least_busy_us: int = 0
    likely_most_busy_us: int = 0
    likely_least_energy_mj: int = 0
    likely_most_energy_mj: int = 0
    resident_us: int | None = None
    band: Band | None = None
    booking: CycleBooking | None = None

    def add(self, booking: CycleBooking, now: float, wall: float) -> None:
        self.booking = booking
        self.seen_at = now
        self.busy_us += booking.busy_us
        self.energy_mj += booking.energy_mj
        self.allocated_us += booking.allocated_us
        # A claim is often read a moment after its pod is seen. Whole minutes count, as with the pauses of an agent.
        self.pending_us = self.pending_us + booking.unsized_us if booking.unsized_us else 0
        if self.pending_us >= MINUTE_US:
            self.unsized_us += self.pending_us
            self.pending_us = 0
        self.resident_us = _sum(self.resident_us, booking.resident_us)
        self.method = booking.method or ("reserved" if booking.share else "")
        is_unsized = bool(booking.claims) and booking.share is None
        self.is_bookable = not is_unsized or bool(self.busy_us or self.energy_mj)
        if booking.busy_us or booking.named_us or booking.instance_ratio:
            self.last_active_at = wall

    def bound(self, band: Band) -> None:
        """Add what is known about a period that is over."""
        self.band = band
        self.settled_busy_us += band.booked_us
        self.least_busy_us += band.least_us
        self.most_busy_us += band.most_us
        self.least_energy_mj += band.least_mj
        self.most_energy_mj += band.most_mj
        self.likely_least_busy_us += band.likely_least_us
        self.likely_most_busy_us += band.likely_most_us
        self.likely_least_energy_mj += band.likely_least_mj
        self.likely_most_energy_mj += band.likely_most_mj

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever counted; less than a minute of a share of unknown size counts for nothing."""
        return not any(getattr(self, counter) for counter in _COUNTERS if counter != "pending_us")

    def take(self, other: "Totals") -> None:
        for counter in _COUNTERS:
            setattr(self, counter, getattr(self, counter) + getattr(other, counter))
        self.resident_us = _sum(self.resident_us, other.resident_us)
        self.seen_at = max(self.seen_at, other.seen_at)


_COUNTERS = [field.name for field in fields(Totals) if field.type is int]


class CardBooks(Struct, gc=False):
    """Totals of one card: by tenant, by reason for what has none, and of the card itself.

    `cycle` has the books of this cycle; None while the card is silent. `moved_mj` is what its energy counter moved by
    the last time it moved, `moved_us` the time that this covers; None is unknown. `last_period` is the period that the
    bands describe, and `last_lanes` show that period. `switching_ratios` are those of the last periods. `seen_at`
    is when the card was last booked, `adopted` the tenants whose UIDs became known, by what they were called
    before.
    """

    tenants: dict[TenantKey, Totals] = field(default_factory=dict)
    rest: dict[str, Totals] = field(default_factory=dict)
    whole: Totals = field(default_factory=Totals)
    period: Period = field(default_factory=Period)
    last_period: Band | None = None
    recorder: LaneRecorder = field(default_factory=LaneRecorder)
    last_lanes: Lanes | None = None
    switching_ratios: tuple[float, ...] = ()
    posted_at: float = 0.0
    seen_at: float = 0.0
    adopted: dict[TenantKey, TenantKey] = field(default_factory=dict)
    cycle: CycleBooks | None = None
    moved_mj: int | None = None
    moved_us: int | None = None
    switches: int | None = None
    switching_us: int | None = None

    def close_cycle(self) -> None:
        """Drop the gauges, which count for one cycle only."""
        self.cycle = None
        for totals in (*self.tenants.values(), *self.rest.values()):
            totals.booking = None

    def post(self, cycle: CycleBooks, interval: Interval, now: float, wall: float) -> None:
        self._adopt(cycle)
        if self.adopted and cycle.gone_mj:
            gone_mj = {self.adopted.get(tenant, tenant): energy_mj for tenant, energy_mj in cycle.gone_mj.items()}
            cycle = replace(cycle, gone_mj=gone_mj)
        self.seen_at = now
        self.cycle = cycle
        self.posted_at = wall
        self.whole.busy_us += cycle.busy_us
        self.whole.energy_mj += cycle.energy_mj
        self.switches = _sum(self.switches, cycle.switches)
        self.switching_us = _sum(self.switching_us, cycle.switching_us)
        for party, booking in cycle.bookings.items():
            totals = self._totals(party)
            totals.add(booking, now, wall)
            if booking.allocated_us and booking.sm_ratio is None and not self.is_idle(party, booking):
                totals.unmeasured_us += booking.allocated_us
        for tenant, energy_mj in cycle.gone_mj.items():
            self._kept(tenant).energy_mj += energy_mj
        self._drop_empty()
        self._note_energy(interval)
        if interval.is_gap:
            self._pass_gap(cycle)
        else:
            if cycle.is_logged:
                self._begin_with_log()
                self.recorder.add(cycle)
            self.period.add(cycle)
            self._judge_samples(cycle)
            if self.period.elapsed_us >= PERIOD_US:
                self._close_period()

    def is_idle(self, party: Party, booking: CycleBooking) -> bool | None:
        """Whether the party certainly has no process on the card in this cycle; None if nobody knows."""
        if self.cycle is None:
            return None
        if booking.running:
            return False
        if not self.cycle.is_watched or not isinstance(party, TenantKey):
            return None
        running = (other for other, booked in self.cycle.bookings.items() if booked.running)
        return None if replace(party.container, container="") in nameless_pods(running) else True

    def _drop_empty(self) -> None:
        """Forget who has left and was never booked anything, as a monitor whose claim is read a moment late."""
        for tenant in [key for key, totals in self.tenants.items() if totals.booking is None and totals.is_empty]:
            del self.tenants[tenant]

    def _adopt(self, cycle: CycleBooks) -> None:
        """Give a tenant whose UID has become known what it had without: else it would seem to have ended.

        The kubelet lists names. At the start of the agent, UIDs come a little later.
        """
        present = {key for key, totals in self.tenants.items() if totals.seen_at == self.seen_at}
        left = {key for key in present if not key.container.pod_uid and key not in cycle.bookings}
        if not left:
            return
        parties = {*self.tenants, *(key for key in cycle.bookings if isinstance(key, TenantKey))}
        by_name = grouped((key for key in parties if key.container.pod_uid), _without_uid)
        for before in left:
            tenant, *others = by_name.get(before, [before])
            if others or tenant in self.tenants:
                continue
            self.tenants[tenant] = self.tenants.pop(before)
            self.adopted = {old: now for old, now in self.adopted.items() if now in self.tenants} | {before: tenant}
            if before in self.period.evidence:
                self.period.evidence[tenant] = self.period.evidence.pop(before)
            if before in self.recorder.booked:
                self.recorder.booked[tenant] = self.recorder.booked.pop(before)

    def _begin_with_log(self) -> None:
        """Begin a new period with the first log: mixed with samples, it would not prove that a tenant was idle."""
        if self.period.elapsed_us and not self.period.is_logged:
            self._close_period()
            self._forget_bands()

    def corrections(self) -> dict[Party, Correction]:
        """How the samples of each party are to be read, by the last checks of the log."""
        return corrections(self.period.recent)

    def _judge_samples(self, cycle: CycleBooks) -> None:
        """Say of each party whether its samples represent it, as far as the log was compared with them."""
        for party, sampling in judged(self.period.recent).items():
            if party in cycle.bookings:
                cycle.bookings[party].sampling = sampling

    def _note_energy(self, interval: Interval) -> None:
        """Keep each party's part of the energy while the counter stands still. A party that is new then has none."""
        is_known = interval.energy_mj is not None and not interval.is_gap
        stands = is_known and interval.energy_us == 0
        if not stands:
            self.moved_mj = interval.energy_mj if is_known else None
            self.moved_us = interval.energy_us
        for totals in (*self.tenants.values(), *self.rest.values()):
            if totals.booking is None or not (is_known and totals.is_bookable):
                totals.moved_mj = None
            elif not stands:
                totals.moved_mj = totals.booking.energy_mj

    def lanes(self) -> Lanes | None:
        """Return those of the last period or, before the first is over, of what there is of it."""
        bands, whole = self.period.bands(), self.period.whole()
        return self.last_lanes or self.recorder.lanes(bands, whole, self.posted_at, is_whole=False)

    @property
    def switching_peak_ratio(self) -> float | None:
        """The most of the last minutes or, before the first is over, of what there is of it."""
        return max(self.switching_ratios, default=self.recorder.switching_ratio)

    def _pass_gap(self, cycle: CycleBooks) -> None:
        """A gap is no part of a period that was watched, and after it there is no last period to show."""
        self._close_period()
        self.period.add(cycle)
        self._close_period()
        self.period = Period()
        self._forget_bands()
        self.switching_ratios = ()

    def _forget_bands(self) -> None:
        self.last_period = self.last_lanes = None
        for totals in (*self.tenants.values(), *self.rest.values()):
            totals.band = None

    def _close_period(self) -> None:
        self._forget_bands()
        self.last_period, bands = self.period.whole(), self.period.bands()
        self.last_lanes = self.recorder.lanes(bands, self.last_period, self.posted_at, is_whole=True)
        if (ratio := self.recorder.switching_ratio) is not None:
            self.switching_ratios = (*self.switching_ratios, ratio)[-SWITCHING_MINUTES:]
        for party, band in bands.items():
            self._kept(party).bound(band)
        self.period, self.recorder = Period(earlier=self.period.kept()), LaneRecorder()

    def _kept(self, party: Party) -> Totals:
        """A tenant that was retired since has no totals of its own any more."""
        is_retired = isinstance(party, TenantKey) and party not in self.tenants
        return self._totals(ENDED if is_retired else party)

    def _totals(self, party: Party) -> Totals:
        if isinstance(party, TenantKey):
            return self.tenants.get(party) or self.tenants.setdefault(party, Totals())
        return self.rest.get(party) or self.rest.setdefault(party, Totals())

    def ended(self, now: float) -> Iterator[tuple[float, list[TenantKey]]]:
        """Yield tenants that have ended, by name, and when they were last seen.

        Pods of one name share their series: they are retired together or not at all.
        """
        if all(totals.seen_at == now for totals in self.tenants.values()):
            return
        named = grouped(self.tenants, _name)
        for tenants in named.values():
            seen_at = max(self.tenants[tenant].seen_at for tenant in tenants)
            left = self._folded(tenants, now) if now - seen_at <= GRACE_SECONDS else tenants
            if seen_at < now:
                yield seen_at, left

    def _folded(self, tenants: list[TenantKey], now: float) -> list[TenantKey]:
        """A name that is still in use keeps one sum for all earlier pods of that name, however many there were."""
        left = []
        for tenant in tenants:
            is_old = now - self.tenants[tenant].seen_at > GRACE_SECONDS
            by_name = _without_uid(tenant) if is_old else tenant
            if tenant != by_name:
                self._move(tenant, self._totals(by_name))
            left.append(by_name)
        return left

    def retire(self, tenants: Iterable[TenantKey]) -> None:
        """Move totals to one sum for the whole card, so that the books still add up."""
        for tenant in set(tenants):
            self._move(tenant, self._totals(ENDED))

    def _move(self, tenant: TenantKey, to: Totals) -> None:
        to.take(self.tenants.pop(tenant))


class NodeBooks:
    """The books of every card, by its UUID."""

    def __init__(self) -> None:
        self.cards: dict[str, CardBooks] = {}

    def post(self, cycles: Iterable[tuple[CycleBooks, Interval]], now: float, wall: float) -> None:
        """Add the books of one cycle, each with its interval.

        A card without any is silent or away: no tenant is known to have ended there.
        """
        for books in self.cards.values():
            books.close_cycle()
        for cycle, interval in cycles:
            books = self.cards.get(cycle.gpu) or self.cards.setdefault(cycle.gpu, CardBooks())
            books.post(cycle, interval, now, wall)
        self._retire_ended(now)

    def forget(self, cards: Iterable[str]) -> None:
        """Drop a card's books, so that they add up from the start should it come back."""
        for card in cards:
            self.cards.pop(card, None)

    def _retire_ended(self, now: float) -> None:
        ended = [
            (seen_at, books, tenants)
            for books in self.cards.values()
            if books.cycle is not None
            for seen_at, tenants in books.ended(now)
        ]
        ended.sort(key=itemgetter(0))
        for number, (seen_at, books, tenants) in enumerate(ended):
            if now - seen_at > GRACE_SECONDS or len(ended) - number > MOST_ENDED:
                books.retire(tenants)


def _sum(so_far: int | None, more: int | None) -> int | None:
    """What was counted stays, also while nothing is counted."""
    return so_far if more is None else (so_far or 0) + more


def _name(tenant: TenantKey) -> tuple[str, ...]:
    container = tenant.container
    return tenant.mig, container.namespace, container.pod, container.container


def _without_uid(tenant: TenantKey) -> TenantKey:
    return replace(tenant, container=replace(tenant.container, pod_uid=""))
