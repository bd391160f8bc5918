"""For how long containers have held something on cards that nothing names."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from podgpu.model import ContainerRef, UnplacedHolding

MINUTE = 60.0
MOST_INTERVALS = 3  # a longer pause is a gap: it is not known who held what


class HeldTime(Struct):
    """`pending` seconds count once there is a minute of them: an annotation may be read a moment after its pod."""

    pending: float = 0.0
    counted: float = 0.0


class UnplacedTime:
    def __init__(self, interval: float) -> None:
        self._longest = MOST_INTERVALS * interval
        self._last: float | None = None
        self._times: dict[ContainerRef, HeldTime] = {}

    def count(self, holdings: Iterable[UnplacedHolding], now: float) -> tuple[UnplacedHolding, ...]:
        """Return the holdings with their times."""
        elapsed = now - self._last if self._last is not None else 0.0
        self._last = now
        passed = elapsed if elapsed <= self._longest else 0.0
        found = []
        times: dict[ContainerRef, HeldTime] = {}
        for holding in holdings:
            time = times[holding.container] = self._times.get(holding.container) or HeldTime()
            time.pending += passed * holding.devices
            if time.pending >= MINUTE * holding.devices:
                time.counted, time.pending = time.counted + time.pending, 0.0
            found.append(replace(holding, seconds=time.counted))
        self._times = times
        return tuple(found)
