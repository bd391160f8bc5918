"""Counters over the agent's life: they never fall, whatever happens to the source or the card."""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct, field

from podgpu.agent.attendance import MOST_CARDS, Attendance
from podgpu.catalog import CATALOG
from podgpu.catalog.row import Kind, Scope
from podgpu.model import Device, Reading, XidEvent

COUNTERS = frozenset(row.name for row in CATALOG if row.kind is Kind.COUNTER and row.scope is Scope.GPU)

RESET_BELOW = 0.5  # of the last value; a smaller fall is a stutter of the card, not a new beginning

SeriesKey = tuple[str, tuple[str, ...]]


class Past(Struct):
    """What is kept of one card: the last value of each counter, what it had before resets, and its XIDs."""

    last: dict[SeriesKey, float] = field(default_factory=dict)
    carried: dict[SeriesKey, float] = field(default_factory=dict)
    xids: Counter[int] = field(default_factory=Counter)
    last_xid: XidEvent | None = None


class Counters:
    """Carries each device counter over resets: a deep fall means that the card or driver began again at zero.

    A card that was away for long may begin anew, which Prometheus takes for a reset.
    """

    def __init__(self, most_cards: int = MOST_CARDS) -> None:
        self._pasts: dict[str, Past] = {}
        self._attendance = Attendance(most_cards)
        self._now = 0.0

    def note(self, events: Iterable[XidEvent]) -> None:
        for event in events:
            past = self._past(event.uuid)
            past.xids[event.xid] += 1
            past.last_xid = event

    def apply(self, device: Device) -> Device:
        """Return the device with its counters carried over and its XIDs added."""
        self._now = max(self._now, device.at)  # of a card that does not answer there may be no time
        past = self._past(device.gpu.uuid)
        readings = tuple(_steady(past, reading) for reading in device.readings)
        return msgspec.structs.replace(device, readings=(*readings, *_xid_readings(past)))

    def _past(self, uuid: str) -> Past:
        for gone in self._attendance.note(uuid, self._now):
            self._pasts.pop(gone, None)
        return self._pasts.setdefault(uuid, Past())


def _steady(past: Past, reading: Reading) -> Reading:
    if reading.metric not in COUNTERS:
        return reading
    key = (reading.metric, reading.labels)
    last = past.last.get(key, 0.0)
    value = max(reading.value, last) if reading.value > last * RESET_BELOW else reading.value
    if value < last:
        past.carried[key] = past.carried.get(key, 0.0) + last
    past.last[key] = value
    return Reading(reading.metric, value + past.carried.get(key, 0.0), reading.labels)


def _xid_readings(past: Past) -> Iterator[Reading]:
    for xid, count in sorted(past.xids.items()):
        yield Reading("xid_errors_total", count, (str(xid),))
    if past.last_xid:
        yield Reading("xid_last_timestamp_seconds", past.last_xid.at)
        yield Reading("xid_last_code", past.last_xid.xid)
