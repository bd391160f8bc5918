"""What each device did since its last reading: the deltas that the ledger books."""

from collections.abc import Iterable

from msgspec import Struct

from podgpu.ledger.cycle import Interval
from podgpu.model import Device

SHORTEST = 0.01  # seconds; less is no time to measure in
LATE_SECONDS = 60.0  # a reading older than the last one by this much is not late: its source has begun anew
GAP_INTERVALS = 3  # a longer silence is a gap: its energy is known, its users are not
IDLE_SHARE_OF_LIMIT = 0.12  # of the power limit, until the card was seen idle: an H200 draws 84 W of 700
MOST_OVER_LIMIT = 1.5  # a card that drew more than this times its limit did not: the counter jumped


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
        energy, since = _energy(before, now, readings, is_gap=is_gap)
        return Interval(
            elapsed_us=round(elapsed * 1e6),
            energy_mj=energy,
            energy_us=None if since is None else round(since * 1e6),
            # A counter that moves now and then brings the idle energy of the whole time since.
            idle_mj=round(idle_watts * (now.at - before.moved_at) * 1e3),
            busy_us=None if is_gap or busy is None else round(min(busy, 1.0) * elapsed * 1e6),
            is_gap=is_gap,
            is_sampled="graphics_engine_active_ratio" not in readings,
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
    before: LastReading, now: LastReading, readings: dict[str, float], *, is_gap: bool
) -> tuple[int | None, float | None]:
    """The counter's increase and the time it covers. Without a counter, or if it jumped, the power meter counts.

    The present power says nothing about a gap. The time is None if nobody knows when the increase began.
    """
    elapsed = now.at - before.at
    power = readings.get("power_watts")
    by_power = None if power is None or is_gap else round(power * elapsed * 1e3)
    if before.energy_mj is None or now.energy_mj is None or now.energy_mj < before.energy_mj:
        return by_power, elapsed
    limit = readings.get("power_limit_watts")
    increase, since = now.energy_mj - before.energy_mj, now.at - before.moved_at
    if limit is not None and increase > MOST_OVER_LIMIT * limit * since * 1e3:
        return by_power, elapsed
    if not increase:
        return 0, 0.0
    return increase, since if before.has_moved else None
