"""Counters over the agent's life: they never fall, whatever happens to the source or the card.

They are kept as long as a card was seen lately. A real card comes back, but the page of a dcgm-exporter may list new
cards in every cycle.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct, field

from podgpu.agent.intervals import MOST_OVER_LIMIT
from podgpu.catalog import CATALOG
from podgpu.catalog.health import CLOCK_EVENTS_RECENT, WINDOW_SECONDS, XID_ERRORS_RECENT
from podgpu.catalog.row import Kind, Scope
from podgpu.model import Device, Reading, XidEvent, value_of

COUNTERS = frozenset(row.name for row in CATALOG if row.kind is Kind.COUNTER and row.scope is Scope.GPU)

RESET_BELOW = 0.5  # of the last value; a smaller fall is noise, not a reset

ENERGY = "energy_joules_total"
BELIEVED_JUMPS = 3  # readings in a row

GRACE_SECONDS = 3600.0
MOST_CARDS = 256

SeriesKey = tuple[str, tuple[str, ...]]


class CounterState(Struct):
    """What is kept of one card: each counter's last value, what it had before resets and what was shown; and its XIDs.

    `jumps` counts readings in a row of an energy that the card cannot have drawn since `energy_at`. `recent` has what
    happened within the window, as (time of the reading, what is counted, its label).
    """

    last: dict[SeriesKey, float] = field(default_factory=dict)
    energy_at: float = 0.0
    jumps: int = 0
    carried: dict[SeriesKey, float] = field(default_factory=dict)
    shown: dict[SeriesKey, float] = field(default_factory=dict)
    xids: Counter[int] = field(default_factory=Counter)
    last_xid: XidEvent | None = None
    fresh_xids: list[int] = field(default_factory=list)
    recent: deque[tuple[float, str, str]] = field(default_factory=deque)


class Counters:
    """Carries each device counter over resets: a deep fall means that the card or driver started again at zero."""

    def __init__(self) -> None:
        self._pasts: dict[str, CounterState] = {}

    def note(self, events: Iterable[XidEvent]) -> None:
        for event in events:
            past = self._past(event.uuid)
            past.xids[event.xid] += 1
            past.last_xid = event
            past.fresh_xids.append(event.xid)

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
    """A card draws no more than its limit, apart from moments. A counter that stays above it was reset."""
    key = ENERGY, energy.labels
    last, limit = past.last.get(key), value_of(device.readings, "power_limit_watts")
    seconds = device.at - past.energy_at
    increase = energy.value if _is_reset(energy.value, last or 0.0) else energy.value - (last or 0.0)
    is_jump = last is not None and limit and increase > MOST_OVER_LIMIT * limit * seconds + limit
    past.jumps = past.jumps + 1 if is_jump else 0
    if is_jump and past.jumps < BELIEVED_JUMPS:
        return False
    if is_jump and last is not None:  # goes on from what was shown
        past.carried[key] = past.carried.get(key, 0.0) + last - energy.value
        past.last[key] = energy.value
    past.energy_at, past.jumps = device.at, 0
    return True


def _is_reset(value: float, last: float) -> bool:
    return value <= last * RESET_BELOW


def _steady(past: CounterState, reading: Reading) -> Reading:
    key = (reading.metric, reading.labels)
    last = past.last.get(key, 0.0)
    value = reading.value if _is_reset(reading.value, last) else max(reading.value, last)
    if value < last:
        past.carried[key] = past.carried.get(key, 0.0) + last
    past.last[key] = value
    # A large number that is added and taken away again leaves a rounding error behind.
    past.shown[key] = max(past.shown.get(key, 0.0), value + past.carried.get(key, 0.0))
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
    past.recent.extend((device.at, XID_ERRORS_RECENT, str(xid)) for xid in past.fresh_xids)
    past.fresh_xids.clear()
    past.recent.extend(
        (device.at, CLOCK_EVENTS_RECENT, reading.labels[0])
        for reading in device.readings
        if reading.metric == "clock_event" and reading.value and reading.labels
    )
    while past.recent and past.recent[0][0] <= device.at - WINDOW_SECONDS:
        past.recent.popleft()
    counts = Counter((metric, label) for _, metric, label in past.recent)
    for (metric, label), number in sorted(counts.items()):
        yield Reading(metric, float(number), (label,))


class SeenCards:
    """Says which cards all parts of the agent have to forget: those unseen for an hour.

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
