"""A minute of a shared card in columns: what was booked to each party, window by window, kept small.

The driver says how busy the card was in windows of about 200 ms, so a column is as long. A party's columns are made to
add up to what was booked to it: windows end a little before or after a reading does.
"""

from array import array
from collections.abc import Iterable, Mapping
from itertools import accumulate, pairwise
from typing import TypeAlias

from msgspec import Struct, field

from podgpu.ledger.cycle import CycleBooks, Party, TenantKey, WindowBooking
from podgpu.model import Band, BusyWindow, Lane, Lanes

STEP_NS = 200_000_000
MOST_COLUMNS = 600
LEAST_SEEN = 0.75  # of the time; with less there are no lanes

Columns: TypeAlias = "array[int]"  # nanoseconds


class LaneRecorder(Struct):
    """Collects the windows of a period. `begin_ns` is when the first one begins."""

    begin_ns: int = 0
    seen: Columns = field(default_factory=lambda: array("Q"))
    switching: Columns = field(default_factory=lambda: array("Q"))
    booked: dict[Party, Columns] = field(default_factory=dict)
    switches: int = 0
    switching_us: int = 0
    logged_us: int = 0

    @property
    def switching_ratio(self) -> float | None:
        return self.switching_us / self.logged_us if self.logged_us else None

    def add(self, cycle: CycleBooks) -> None:
        self.switches += cycle.switches or 0
        self.switching_us += cycle.switching_us or 0
        self.logged_us += cycle.logged_us
        for booking in cycle.windows:
            self._add(booking)

    def _add(self, booking: WindowBooking) -> None:
        window = booking.window
        if not self.seen:
            self.begin_ns = window.begin_ns
        length = window.end_ns - window.begin_ns
        for column, part_ns in _columns(window, self.begin_ns):
            self._reach(column)
            self.seen[column] += part_ns
            self.switching[column] += max(0, length - booking.resident_ns) * part_ns // length
            for party, booked_ns in booking.booked.items():
                self._of(party)[column] += booked_ns * part_ns // length

    def _reach(self, column: int) -> None:
        if (missing := column + 1 - len(self.seen)) > 0:
            for columns in (self.seen, self.switching, *self.booked.values()):
                columns.extend([0] * missing)

    def _of(self, party: Party) -> Columns:
        if party not in self.booked:
            self.booked[party] = array("Q", [0] * len(self.seen))
        return self.booked[party]

    def lanes(self, bands: Mapping[Party, Band], whole: Band, ended_at: float, *, is_whole: bool) -> Lanes | None:
        """Return what was collected; None if the log has too little of it. The bands are those of the same time."""
        if not self.seen or sum(self.seen) < LEAST_SEEN * 1000 * whole.elapsed_us:
            return None
        # Tenants by name, then the reasons.
        parties = sorted(bands, key=lambda party: (isinstance(party, str), str(party)))
        shown = [party for party in parties if isinstance(party, TenantKey) or bands[party].booked_us]
        return Lanes(
            is_whole=is_whole,
            ended_at=ended_at,
            step_us=STEP_NS // 1000,
            elapsed_us=whole.elapsed_us,
            lanes=tuple(self._lane(party, bands[party].booked_us) for party in shown),
            seen_us=tuple(nanoseconds // 1000 for nanoseconds in self.seen),
            switching_us=_scaled(self.switching, self.switching_us),
            switches=self.switches,
            logged_us=self.logged_us,
        )

    def _lane(self, party: Party, booked_us: int) -> Lane:
        # The log does not show when an MPS client worked: its time is spread evenly.
        busy_us = _scaled(self.booked.get(party, self.seen), booked_us)
        if isinstance(party, TenantKey):
            return Lane(container=party.container, busy_us=busy_us)
        return Lane(reason=party, busy_us=busy_us)


def _columns(window: BusyWindow, begin_ns: int) -> Iterable[tuple[int, int]]:
    """Yield the columns that a window is in, and its part of each; none, if the clock was set back."""
    at = window.begin_ns
    while begin_ns <= at < window.end_ns:
        column = (at - begin_ns) // STEP_NS
        if column >= MOST_COLUMNS:
            return
        end = min(window.end_ns, begin_ns + (column + 1) * STEP_NS)
        yield column, end - at
        at = end


def _scaled(columns: Columns, total: int) -> tuple[int, ...]:
    """Divide the total like the columns, exactly."""
    whole = sum(columns)
    if not whole:
        return (0,) * len(columns)
    ends = (total * so_far // whole for so_far in accumulate(columns, initial=0))
    return tuple(after - before for before, after in pairwise(ends))
