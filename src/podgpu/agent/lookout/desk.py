"""Brings windows and log together: each comes in its own time."""

from collections.abc import Iterable

from msgspec import Struct, field

from podgpu.ledger.residency import Evidence
from podgpu.model import BusyWindow, Slice, Span, SwitchLog

KEPT_NS = 1_000_000_000  # a window that has not come yet may begin this long ago


class Desk(Struct):
    """What is known about a card and not yet booked: windows end a little before or after the log does."""

    windows: list[BusyWindow] = field(default_factory=list)
    slices: list[Slice] = field(default_factory=list)
    blind: list[Span] = field(default_factory=list)
    known_ns: int = 0  # the end of the log so far

    def take(self, log: SwitchLog, windows: Iterable[BusyWindow]) -> Evidence:
        """Return what is complete, and keep the rest."""
        self.windows += windows
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
        oldest = min((one.begin_ns for one in self.windows), default=log.end_ns - KEPT_NS)
        self.slices = [one for one in self.slices if one.end_ns > oldest]
        self.blind = [one for one in self.blind if one.end_ns > oldest]
        return evidence
