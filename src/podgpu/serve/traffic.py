"""Counts how a page was served."""

import time
from collections import deque

from podgpu.views.dialects import PageTraffic

RECENT_SECONDS = 60.0
MOST_RECENT = 1024  # requests whose times are kept


class TrafficCounter:
    def __init__(self) -> None:
        self._requests = 0
        self._body_bytes = 0
        self._seconds = 0.0
        self._recent: deque[tuple[float, float]] = deque(maxlen=MOST_RECENT)

    def add(self, body_bytes: int, seconds: float) -> None:
        self._requests += 1
        self._body_bytes += body_bytes
        self._seconds += seconds
        self._recent.append((time.monotonic(), seconds))

    @property
    def state(self) -> PageTraffic:
        since = time.monotonic() - RECENT_SECONDS
        return PageTraffic(
            requests=self._requests,
            body_bytes=self._body_bytes,
            seconds=self._seconds,
            recent_seconds=tuple(seconds for at, seconds in self._recent if at >= since),
        )
