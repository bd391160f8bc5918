"""Counters over the agent's life: they never fall, whatever happens to the source or the card."""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from podgpu.catalog import CATALOG
from podgpu.catalog.row import Kind, Scope
from podgpu.model import Device, Reading, XidEvent

COUNTERS = frozenset(row.name for row in CATALOG if row.kind is Kind.COUNTER and row.scope is Scope.GPU)

RESET_BELOW = 0.5  # of the last value; a smaller fall is a stutter of the card, not a new beginning

SeriesKey = tuple[str, str, tuple[str, ...]]


class Counters:
    """Carries each device counter over resets: a deep fall means that the card or driver began again at zero."""

    def __init__(self) -> None:
        self._last: dict[SeriesKey, float] = {}
        self._carried: dict[SeriesKey, float] = {}
        self._xids: dict[str, Counter[int]] = {}
        self._last_xid: dict[str, XidEvent] = {}

    def note(self, events: Iterable[XidEvent]) -> None:
        for event in events:
            self._xids.setdefault(event.uuid, Counter())[event.xid] += 1
            self._last_xid[event.uuid] = event

    def apply(self, device: Device) -> Device:
        """Return the device with its counters carried over and its XIDs added."""
        uuid = device.gpu.uuid
        readings = tuple(self._steady(uuid, reading) for reading in device.readings)
        return msgspec.structs.replace(device, readings=(*readings, *self._xid_readings(uuid)))

    def _steady(self, uuid: str, reading: Reading) -> Reading:
        if reading.metric not in COUNTERS:
            return reading
        key = (uuid, reading.metric, reading.labels)
        last = self._last.get(key, 0.0)
        value = max(reading.value, last) if reading.value > last * RESET_BELOW else reading.value
        if value < last:
            self._carried[key] = self._carried.get(key, 0.0) + last
        self._last[key] = value
        return Reading(reading.metric, value + self._carried.get(key, 0.0), reading.labels)

    def _xid_readings(self, uuid: str) -> Iterator[Reading]:
        for xid, count in sorted(self._xids.get(uuid, {}).items()):
            yield Reading("xid_errors_total", count, (str(xid),))
        last = self._last_xid.get(uuid)
        if last:
            yield Reading("xid_last_timestamp_seconds", last.at)
            yield Reading("xid_last_code", last.xid)
