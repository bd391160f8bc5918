"""Brings windows and log together: each comes in its own time."""

from collections.abc import Iterable

from msgspec import Struct, field

from podgpu.ledger.residency import Evidence
from podgpu.model import BusyWindow, Slice, Span, SwitchLog

LARGEST_DRIFT_NS = 20_000_000  # a log that begins longer before the end of the last has another clock
KEPT_NS = 1_000_000_000  # a window that has not come yet may begin this long ago


class Desk(Struct):
    """What is known about a card and not yet booked: windows end a little before or after the log does."""

    windows: list[BusyWindow] = field(default_factory=list)
    slices: list[Slice] = field(default_factory=list)
    blind: list[Span] = field(default_factory=list)
    known_ns: int = 0  # the end of the log so far

    def take(self, log: SwitchLog, windows: Iterable[BusyWindow]) -> Evidence:
        """Return what is complete, and keep the rest. After a clock was set back, no time before it can be compared."""
        if log.begin_ns < self.known_ns - LARGEST_DRIFT_NS:
            self.windows, self.slices, self.blind, self.known_ns = [], [], [], 0
            windows = ()  # they may be by either clock
        self._wait_for(windows)
        self.slices += log.slices
        self.blind += log.lost
        if log.begin_ns > self.known_ns:
            self.blind.append(Span(self.known_ns, log.begin_ns))
        self.known_ns = log.end_ns
        evidence = Evidence(
            windows=tuple(one for one in self.windows if one.end_ns <= log.end_ns),
            slices=tuple(self.slices),
            blind=tuple(self.blind),
            log=log,
        )
        self.windows = [one for one in self.windows if one.end_ns > log.end_ns]
        oldest = min((log.end_ns - KEPT_NS, *(one.begin_ns for one in self.windows)))
        self.slices = [one for one in self.slices if one.end_ns > oldest]
        # What is forgotten is not known any more.
        self.blind = [Span(0, oldest), *(one for one in self.blind if one.end_ns > oldest)]
        return evidence

    def _wait_for(self, windows: Iterable[BusyWindow]) -> None:
        """Add windows. Those that seem to end after later ones were stamped before the clock was set back."""
        for one in windows:
            if self.windows and one.end_ns < self.windows[-1].end_ns - LARGEST_DRIFT_NS:
                self.windows = []
            self.windows.append(one)
