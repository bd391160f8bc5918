"""The state of a part: whether it works, why not and since when, how old its data is, and its errors so far."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from podgpu.kube.api import ApiFault
from podgpu.model import Fault, PartStatus


class Condition:
    """`seconds` is how long the last attempt took. A part that has not worked yet is `starting`."""

    def __init__(
        self,
        name: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        errors: Counter[str] | None = None,
    ) -> None:
        self.errors: Counter[str] = Counter() if errors is None else errors
        self.seconds = 0.0
        self.fault: Fault | None = Fault(reason="starting")
        self._name = name
        self._clock = clock
        self._failing_since = clock()
        self._good_at: float | None = None
        self._is_current = False

    @property
    def has_worked(self) -> bool:
        return self._good_at is not None

    def worked(self, missing: Fault | None = None) -> None:
        """The data is fresh. `missing` says why some of it is missing, and is counted once, when it begins."""
        if missing and (self.fault is None or self.fault.reason != missing.reason):
            self.failed(missing)
        self.fault = missing
        self._good_at = self._clock()

    def failed(self, fault: Fault) -> None:
        """Count the failure. A fault lasts for as long as its reason stays the same."""
        self.errors[fault.reason] += 1
        if self.fault is None or self.fault.reason != fault.reason:
            self._failing_since = self._clock()
        self.fault = fault

    def api_failed(self, fault: ApiFault, grant: str = "") -> None:
        """Count a failure of the API server. `grant` is what to do if a right is missing."""
        detail = f"{grant}: {fault.detail}" if fault.reason == "forbidden" and grant else fault.detail
        self.failed(Fault(reason=fault.reason, detail=detail))

    @contextmanager
    def kept_current(self) -> Iterator[None]:
        """Keep the age at 0 while a watch is open: silence means that nothing has changed."""
        self._is_current = True
        try:
            yield
        finally:
            self._is_current = False
            self._good_at = self._clock()

    def status(self) -> PartStatus:
        now = self._clock()
        age = None if self._good_at is None else now - self._good_at
        return PartStatus(
            name=self._name,
            up=self.fault is None,
            fault=self.fault and replace(self.fault, seconds=now - self._failing_since),
            duration_seconds=self.seconds,
            age_seconds=0.0 if self._is_current else age,
        )
