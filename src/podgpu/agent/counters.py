"""Counters over the agent's life, which never fall, and what a device did since its last reading.

Both are kept for cards that were seen recently. A real card comes back, but the page of a dcgm-exporter may list new
cards in every cycle.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct, field

from podgpu.catalog import CATALOG
from podgpu.catalog.health import CLOCK_EVENTS_RECENT, WINDOW_SECONDS, XID_ERRORS_RECENT
from podgpu.catalog.row import Kind, Scope
from podgpu.ledger.cycle import Interval
from podgpu.model import Device, Reading, XidEvent, value_of

COUNTERS = frozenset(row.name for row in CATALOG if row.kind is Kind.COUNTER and row.scope is Scope.GPU)

RESET_BELOW = 0.5  # of the last value; a smaller fall is noise, not a reset

ENERGY = "energy_joules_total"
BELIEVED_JUMPS = 3  # readings in a row
SHORTEST = 0.01  # seconds; less is too short to measure
LATE_SECONDS = 60.0  # a reading older than the last one by this much is not late: its source has restarted
GAP_INTERVALS = 3  # a longer silence is a gap: its energy is known, its users are not
IDLE_SHARE_OF_LIMIT = 0.12  # of the power limit, until the card was seen idle: an H200 draws 84 W of 700
MOST_OVER_LIMIT = 1.5  # a card that drew more than this times its limit did not: the counter jumped

GRACE_SECONDS = 3600.0
MOST_CARDS = 256

SeriesKey = tuple[str, tuple[str, ...]]


class CounterState(Struct):
    """What is kept of one card: each counter's last value, what it had before resets and what was shown; and its XIDs.

    `jumps` counts readings in a row of an energy that the card cannot have drawn since `energy_at`, when it last moved.
    `recent` has what happened within the window, as (time of the report, what is counted, its label).
    """

    last: dict[SeriesKey, float] = field(default_factory=dict)
    energy_at: float = 0.0
    jumps: int = 0
    jumped_to: float | None = None
    carried: dict[SeriesKey, float] = field(default_factory=dict)
    shown: dict[SeriesKey, float] = field(default_factory=dict)
    xids: Counter[int] = field(default_factory=Counter)
    last_xid: XidEvent | None = None
    recent: deque[tuple[float, str, str]] = field(default_factory=deque)


class Counters:
    """Carries each device counter over resets: a deep fall means that the card or driver started again at zero."""

    def __init__(self) -> None:
        self._pasts: dict[str, CounterState] = {}

    def note(self, events: Iterable[XidEvent], now: float) -> None:
        for event in events:
            past = self._past(event.uuid)
            past.xids[event.xid] += 1
            past.last_xid = event
            past.recent.append((now, XID_ERRORS_RECENT, str(event.xid)))
            _forget_old(past, now)

    def apply(self, device: Device) -> Device:
        """Return the device with its counters carried over and its XIDs added."""
        past = self._past(device.gpu.uuid)
        readings = [
            _steady(past, reading) if reading.metric in COUNTERS else reading
            for reading in device.readings
            if reading.metric != ENERGY or _is_possible(past, reading, device)
        ]
        more = (*_xid_readings(past), *_recent(past, device))
        return msgspec.structs.replace(device, readings=(*readings, *more))

    def forget(self, cards: Iterable[str]) -> None:
        """A card that was away for long may start at zero, which Prometheus takes for a reset."""
        for card in cards:
            self._pasts.pop(card, None)

    def _past(self, uuid: str) -> CounterState:
        return self._pasts.get(uuid) or self._pasts.setdefault(uuid, CounterState())


def _is_possible(past: CounterState, energy: Reading, device: Device) -> bool:
    """Whether the card can have drawn so much: apart from moments, no more than its limit allows.

    A counter that stays above that was reset.
    """
    key = ENERGY, energy.labels
    last, limit = past.last.get(key), value_of(device.readings, "power_limit_watts")
    seconds = device.at - past.energy_at
    increase = energy.value if _is_reset(energy.value, last or 0.0) else energy.value - (last or 0.0)
    is_jump = last is not None and limit and increase > MOST_OVER_LIMIT * limit * seconds + limit
    if not is_jump:
        past.jumps = 0
    elif energy.value != past.jumped_to:  # else it is the same reading, shown again
        past.jumps += 1
    past.jumped_to = energy.value if is_jump else None
    if is_jump and past.jumps < BELIEVED_JUMPS:
        return False
    if is_jump and last is not None:  # goes on from what was shown
        past.carried[key] = past.carried.get(key, 0.0) + last - energy.value
        past.last[key] = energy.value
    if energy.value != last:  # a counter that is read now and then brings the energy of all the time since
        past.energy_at = device.at
    past.jumps = 0
    return True


def _is_reset(value: float, last: float) -> bool:
    return value <= last * RESET_BELOW


def _steady(past: CounterState, reading: Reading) -> Reading:
    key = (reading.metric, reading.labels)
    last = past.last.get(key)
    if last == reading.value and past.shown[key] == last:  # most counters stand still
        return reading
    last = last or 0.0
    value = reading.value if _is_reset(reading.value, last) else max(reading.value, last)
    if value < last:
        past.carried[key] = past.carried.get(key, 0.0) + last
    past.last[key] = value
    total = value + past.carried.get(key, 0.0)
    if reading.metric == ENERGY:  # it is counted in millijoules, and their sum has no more decimals
        total = round(total, 3)
    # A large number that is added and taken away again leaves a rounding error behind.
    past.shown[key] = max(past.shown.get(key, 0.0), total)
    return Reading(reading.metric, past.shown[key], reading.labels)


def _xid_readings(past: CounterState) -> Iterator[Reading]:
    for xid, count in sorted(past.xids.items()):
        yield Reading("xid_errors_total", count, (str(xid),))
    if past.last_xid:
        yield Reading("xid_last_timestamp_seconds", past.last_xid.at)
        yield Reading("xid_last_code", past.last_xid.xid)


def _recent(past: CounterState, device: Device) -> Iterator[Reading]:
    """What happened within the window: XIDs, and readings with each reason for the clocks."""
    if device.fault:
        return
    past.recent.extend(
        (device.at, CLOCK_EVENTS_RECENT, reading.labels[0])
        for reading in device.readings
        if reading.metric == "clock_event" and reading.value and reading.labels
    )
    _forget_old(past, device.at)
    counts = Counter((metric, label) for _, metric, label in past.recent)
    for (metric, label), number in sorted(counts.items()):
        yield Reading(metric, float(number), (label,))


def _forget_old(past: CounterState, now: float) -> None:
    while past.recent and past.recent[0][0] <= now - WINDOW_SECONDS:
        past.recent.popleft()


class SeenCards:
    """Decides which cards all parts of the agent forget: those that were not seen for an hour.

    Beyond `most` cards, those longest unseen are forgotten before their time.
    """

    def __init__(self, most: int = MOST_CARDS) -> None:
        self._most = most
        self._seen_at: dict[str, float] = {}  # the longest unseen first

    def note(self, cards: Iterable[str], now: float) -> list[str]:
        """Note that these cards are here, and return those to forget."""
        for card in cards:
            self._seen_at.pop(card, None)
            self._seen_at[card] = now
        gone: list[str] = []
        for card, seen_at in self._seen_at.items():
            if now - seen_at <= GRACE_SECONDS and len(self._seen_at) - len(gone) <= self._most:
                break
            gone.append(card)
        for card in gone:
            del self._seen_at[card]
        return gone


class LastReading(Struct, frozen=True, gc=False):
    """The previous reading: when, what the energy counter said, and since when it said so.

    A page that is scraped may show a counter that moves every 30 s. `has_moved` says that it was seen to move then; if
    not, it may have said the same for long before.
    """

    at: float
    energy_mj: int | None
    moved_at: float
    has_moved: bool = False


class IntervalMeter:
    """Remembers the previous reading of each card, and how little power it was seen to draw."""

    def __init__(self, interval: float) -> None:
        self._longest = GAP_INTERVALS * interval
        self._last: dict[str, LastReading] = {}
        self._idle_watts: dict[str, float] = {}

    def forget(self, cards: Iterable[str]) -> None:
        for card in cards:
            self._last.pop(card, None)
            self._idle_watts.pop(card, None)

    def interval(self, device: Device) -> Interval | None:
        """Return what happened since the previous reading; None for the first one, also after a long absence."""
        readings = {reading.metric: reading.value for reading in device.readings if not reading.labels}
        busy = readings.get("graphics_engine_active_ratio", readings.get("utilization_ratio"))
        idle_watts = self._learned(device.gpu.uuid, readings, busy)
        before = self._last.get(device.gpu.uuid)
        if before and -LATE_SECONDS < device.at - before.at < SHORTEST:
            # The next reading ends the interval, so that nothing is lost. What was before the last one is booked.
            return None
        now = self._last[device.gpu.uuid] = _now(device.at, readings, before)
        if before is None or now.at < before.at:
            return None
        elapsed = now.at - before.at
        is_gap = elapsed > self._longest
        power = readings.get("power_watts")
        drawn = None if power is None or is_gap else round(power * elapsed * 1e3)
        energy, since = _energy(before, now, readings, drawn)
        return Interval(
            elapsed_us=round(elapsed * 1e6),
            energy_mj=energy,
            energy_us=None if since is None else round(since * 1e6),
            # A counter that moves now and then brings the idle energy of the whole time since.
            idle_mj=round(idle_watts * (now.at - before.moved_at) * 1e3),
            busy_us=None if is_gap or busy is None else round(min(busy, 1.0) * elapsed * 1e6),
            is_gap=is_gap,
            is_sampled="graphics_engine_active_ratio" not in readings,
            drawn_mj=drawn,
            idle_drawn_mj=round(idle_watts * elapsed * 1e3),
        )

    def _learned(self, uuid: str, readings: dict[str, float], busy: float | None) -> float:
        """The least power drawn while nothing ran; before that was seen, a usual share of the limit.

        A card that answers draws something: a reading of 0 W says nothing about it.
        """
        power = readings.get("power_watts")
        if power is not None and power > 0 and busy == 0:
            self._idle_watts[uuid] = min(power, self._idle_watts.get(uuid, power))
        return self._idle_watts.get(uuid, IDLE_SHARE_OF_LIMIT * readings.get("power_limit_watts", 0.0))


def _now(at: float, readings: dict[str, float], before: LastReading | None) -> LastReading:
    energy = readings.get("energy_joules_total")
    counted = None if energy is None else round(energy * 1000)
    if before is None or at < before.at or None in (counted, before.energy_mj):
        return LastReading(at, counted, at)
    if counted == before.energy_mj:
        return LastReading(at, counted, before.moved_at, before.has_moved)
    return LastReading(at, counted, at, has_moved=True)


def _energy(
    before: LastReading, now: LastReading, readings: dict[str, float], drawn: int | None
) -> tuple[int | None, float | None]:
    """The counter's increase and the time it covers. Without a counter, or if it jumped, what the power meter says.

    The present power says nothing about a gap. The time is None if it is unknown when the increase began.
    """
    elapsed = now.at - before.at
    if before.energy_mj is None or now.energy_mj is None or now.energy_mj < before.energy_mj:
        return drawn, elapsed
    limit = readings.get("power_limit_watts")
    increase, since = now.energy_mj - before.energy_mj, now.at - before.moved_at
    if limit is not None and increase > MOST_OVER_LIMIT * limit * since * 1e3:
        return drawn, elapsed
    if not increase:
        return 0, 0.0
    return increase, since if before.has_moved else None
