"""Ten glimpses a second of how busy a card is, for as long as somebody asks for them."""

import time
from collections import deque

import pynvml

from podgpu.sources.nvml.gpm.pair import Pair
from podgpu.sources.nvml.gpm.tenths import Glimpse
from podgpu.sources.nvml.handle import Handle

BUSY = (
    pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL
)  # the busy time of the whole card, as in `graphics_engine_active_ratio`
MOST_GLIMPSES = 300  # half a minute; if nobody asks for so long, the oldest go


class Pulse:
    """Has samples of its own, so that those of the profiler stay what they are."""

    def __init__(self, handle: Handle) -> None:
        self._pair = Pair(handle, [BUSY])
        self._sampled_ns = 0
        self._glimpses: deque[Glimpse] = deque(maxlen=MOST_GLIMPSES)

    def beat(self) -> None:
        """Take a sample. Together with the one before it makes a glimpse."""
        now = time.time_ns()
        if not self._pair.is_open:
            self._sampled_ns = now if self._pair.open() else 0
            return
        if not self._pair.step():
            self.close()
            return
        busy = (self._pair.values() or {}).get(BUSY)
        if busy is not None and 0 <= busy <= 100 and now > self._sampled_ns:  # a clock may be set back
            self._glimpses.append(Glimpse(self._sampled_ns, now, busy / 100))
        self._sampled_ns = now

    def taken(self) -> list[Glimpse]:
        """Return the glimpses since the last time."""
        found = list(self._glimpses)
        self._glimpses.clear()
        return found

    def close(self) -> None:
        self._pair.close()
        self._glimpses.clear()
