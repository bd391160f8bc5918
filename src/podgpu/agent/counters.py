"""Counters over the agent's life: they never fall, whatever happens to the source or the card."""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct, field

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
    """Carries each device counter over resets: a deep fall means that the card or driver began again at zero."""

    def __init__(self) -> None:
        self._pasts: dict[str, Past] = {}

    def note(self, events: Iterable[XidEvent]) -> None:
        for event in events:
            past = self._past(event.uuid)
            past.xids[event.xid] += 1
            past.last_xid = event

    def apply(self, device: Device) -> Device:
        """Return the device with its counters carried over and its XIDs added."""
        past = self._past(device.gpu.uuid)
        readings = [
            _steady(past, reading) if reading.metric in COUNTERS else reading for reading in device.readings
        ]
        return msgspec.structs.replace(device, readings=(*readings, *_xid_readings(past)))

    def forget(self, cards: Iterable[str]) -> None:
        """A card that was away for long may begin anew, which Prometheus takes for a reset."""
        for card in cards:
            self._pasts.pop(card, None)

    def _past(self, uuid: str) -> Past:
        past = self._pasts.get(uuid)
        if past is None:
            past = self._pasts[uuid] = Past()
        return past


def _steady(past: Past, reading: Reading) -> Reading:
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
