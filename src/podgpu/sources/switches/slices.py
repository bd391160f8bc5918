"""Records become slices. A log that is quiet says that nothing has changed, so whoever was on the card still is.

Times are those of the card, in nanoseconds, until `cut` takes the log to the node's clock.
"""

from collections import Counter

from msgspec import Struct

from podgpu.model import ENDED_PID, HIDDEN_PID, Slice, Span, SwitchLog
from podgpu.sources.switches import layout

LONGEST_SWITCH_NS = 1_000_000  # ten times what a switch takes; longer, and nobody wanted the card
LARGEST_STEP_NS = 20_000_000  # between two readings the clocks of card and node drift apart by less
LARGEST_DOUBT_NS = 500_000
MOST_SLICES = 1_000_000  # if nobody asks for so long, what is older is lost


class CardClock(Struct, frozen=True, gc=False):
    """The card's time, and how far it is ahead of the node's, give or take `doubt_ns`."""

    now_ns: int
    ahead_ns: int
    doubt_ns: int = 0


class CurrentContext(Struct, gc=False):
    pid: int
    context: int
    begin_ns: int


class SliceBuilder:
    """`counts` are errors and oddities since they were last taken, by the reasons in operations.md."""

    def __init__(self, began_ns: int) -> None:
        self.counts: Counter[str] = Counter()
        self._began_ns = began_ns
        self._known_ns: int | None = None  # from here on it is known who was on the card
        self._last_ns = began_ns  # of the newest record with an exact stamp
        self._sequence: int | None = None
        self._resident: CurrentContext | None = None
        self._blind_ns: int | None = None  # from here on it is not, until the next record
        self._ended_ns: int | None = None  # when the card was last left, and nobody has come since
        self._slices: list[Slice] = []
        self._lost: list[Span] = []
        self._starts: list[int] = []
        self._gaps: list[Span] = []  # between two contexts; no slice overlaps one
        self._ahead_ns: int | None = None

    def feed(self, records: bytes, dropped: int) -> None:
        for kind, _, _, event, _, sequence, context, pid, _, gi, ci, stamp in layout.RECORD.iter_unpack(
            records
        ):
            if kind not in layout.TYPES:
                self.counts["other_record"] += 1
            elif kind != layout.TYPE_WITHOUT_MIG and (gi, ci) != (layout.NO_INSTANCE, layout.NO_INSTANCE):
                self.counts["mig_record"] += 1
            else:
                self._follow(sequence)
                self._take(event, ENDED_PID if pid == layout.NO_PID else pid, context, stamp)
        if dropped:
            self.counts["overflow"] += dropped
            self._go_blind()
        if len(self._slices) > MOST_SLICES:
            self._lose(self._slices[0].begin_ns, self._slices[-1].end_ns)
            self._slices, self._starts, self._gaps = [], [], []

    def cut(self, clock: CardClock, delay_ns: int) -> SwitchLog | None:
        """Return the log up to `delay_ns` ago, in the node's time. None as long as nobody knows who is on the card.

        If one of the clocks was set, nobody knows by how much the slices are off.
        """
        ahead_ns, is_step = self._ahead(clock)
        until = clock.now_ns - delay_ns
        if is_step:
            self.counts["clock_step"] += 1
        if self._known_ns is None or until <= self._known_ns:
            return None
        begin, self._known_ns = self._known_ns, until
        if is_step:
            self._lose(begin, until)
        if self._blind_ns is not None and self._blind_ns < until:
            self._lose(self._blind_ns, until)
            self._blind_ns = until
        return SwitchLog(
            begin_ns=begin - ahead_ns,
            end_ns=until - ahead_ns,
            slices=tuple(self._slices_until(until, ahead_ns)),
            lost=tuple(self._lost_until(until, ahead_ns)),
            switches=self._switches_until(until),
            switching_ns=sum(one.end_ns - one.begin_ns for one in self._gaps_until(until)),
        )

    def _ahead(self, clock: CardClock) -> tuple[int, bool]:
        """Return how far the card's clock is ahead, and whether a clock was set. A doubtful answer changes nothing."""
        before = self._ahead_ns
        if before is None:
            self._ahead_ns = clock.ahead_ns
            return clock.ahead_ns, False
        change = abs(clock.ahead_ns - before)
        if change <= LARGEST_STEP_NS + clock.doubt_ns and clock.doubt_ns > LARGEST_DOUBT_NS:
            return before, False
        self._ahead_ns = clock.ahead_ns
        return clock.ahead_ns, change > LARGEST_STEP_NS + clock.doubt_ns

    def _follow(self, sequence: int) -> None:
        """Notice what is missing before this record."""
        missing = (sequence - self._sequence - 1) & 0xFFFF if self._sequence is not None else 0
        self._sequence = sequence
        if missing:
            self.counts["lost_records"] += missing
            self._go_blind()

    def _take(self, event: int, pid: int, context: int, stamp: int) -> None:
        if pid == HIDDEN_PID:
            self.counts["hidden_record"] += 1
            stamp = max(stamp, self._last_ns) if stamp else 0  # it is blurred
        elif pid == ENDED_PID:
            self.counts["ended_record"] += 1
        if not stamp or stamp < self._last_ns:
            self.counts["bad_stamp"] += 1
            self._go_blind()
            self._last_ns = stamp or self._last_ns
            return
        # The log may have been given away up to a later time.
        at = max(stamp, self._known_ns or 0)
        if at > stamp:
            self.counts["late_record"] += 1
        if event == layout.START:
            self._start(pid, context, at)
        elif event == layout.END:
            self._end(pid, context, at)
        else:
            self.counts["other_record"] += 1
            return
        if pid != HIDDEN_PID:
            self._last_ns = stamp

    def _start(self, pid: int, context: int, stamp: int) -> None:
        if self._resident:
            self.counts["unpaired"] += 1
            self._go_blind()
        self._see(stamp)
        if self._known_ns is None:
            self._known_ns = stamp
        self._rewind(stamp)
        self._starts.append(stamp)
        if self._ended_ns is not None and 0 < stamp - self._ended_ns <= LONGEST_SWITCH_NS:
            self._gaps.append(Span(max(self._ended_ns, self._known_ns), stamp))
        self._resident, self._ended_ns = CurrentContext(pid, context, stamp), None

    def _rewind(self, stamp: int) -> None:
        """Take back what blurred stamps put after this one, so that no moment counts twice."""
        while self._slices and self._slices[-1].end_ns > stamp:
            last = self._slices.pop()
            if last.begin_ns < stamp:
                self._slices.append(Slice(last.pid, last.begin_ns, stamp))
        while self._gaps and self._gaps[-1].end_ns > stamp:
            gap = self._gaps.pop()
            if gap.begin_ns < stamp:
                self._gaps.append(Span(gap.begin_ns, stamp))
        if self._ended_ns is not None:
            self._ended_ns = min(self._ended_ns, stamp)

    def _end(self, pid: int, context: int, stamp: int) -> None:
        there, self._resident = self._resident, None
        if self._known_ns is None:  # it was there before anybody looked
            self._known_ns = self._began_ns
            there = CurrentContext(pid, context, self._began_ns)
        elif there is None or there.context != context:
            self.counts["unpaired"] += self._blind_ns is None
            self._resident = there
            self._go_blind()
            self._see(stamp)
            return
        self._ended_ns = max(stamp, there.begin_ns)
        # A process may have ended on the way, but not another one come.
        whose = pid if there.pid == ENDED_PID else there.pid
        if stamp > there.begin_ns:
            self._slices.append(Slice(whose, there.begin_ns, stamp))

    def _go_blind(self) -> None:
        """From the last record on, or from the beginning of the slice, nobody knows who is on the card."""
        if self._blind_ns is None:
            self._blind_ns = self._resident.begin_ns if self._resident else self._last_ns
        self._resident = self._ended_ns = None

    def _see(self, stamp: int) -> None:
        if self._blind_ns is not None:
            self._lose(self._blind_ns, max(stamp, self._blind_ns + 1))
            self._blind_ns = None

    def _lose(self, begin_ns: int, end_ns: int) -> None:
        self._lost.append(Span(begin_ns, end_ns))

    def _slices_until(self, until: int, ahead: int) -> list[Slice]:
        """Take what is over. A slice that is not goes on in the next log."""
        ready, left = [], []
        for one in self._slices:
            if one.begin_ns < until:
                ready.append(Slice(one.pid, one.begin_ns - ahead, min(one.end_ns, until) - ahead))
            if one.end_ns > until:
                left.append(Slice(one.pid, max(one.begin_ns, until), one.end_ns))
        there = self._resident
        if there and there.begin_ns < until:
            ready.append(Slice(there.pid, there.begin_ns - ahead, until - ahead))
            there.begin_ns = until
        self._slices = left
        return ready

    def _lost_until(self, until: int, ahead: int) -> list[Span]:
        ready = [Span(one.begin_ns - ahead, one.end_ns - ahead) for one in self._lost if one.begin_ns < until]
        self._lost = [Span(max(one.begin_ns, until), one.end_ns) for one in self._lost if one.end_ns > until]
        return ready

    def _switches_until(self, until: int) -> int:
        left = [stamp for stamp in self._starts if stamp >= until]
        count, self._starts = len(self._starts) - len(left), left
        return count

    def _gaps_until(self, until: int) -> list[Span]:
        """Cut gaps where slices are cut, so that time on the card and between contexts is never more than there was."""
        ready = [Span(one.begin_ns, min(one.end_ns, until)) for one in self._gaps if one.begin_ns < until]
        self._gaps = [Span(max(one.begin_ns, until), one.end_ns) for one in self._gaps if one.end_ns > until]
        return ready
