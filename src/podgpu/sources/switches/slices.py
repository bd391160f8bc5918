"""Turns records into slices. While there are no new records, the last context is still on the card.

Times are those of the card, in nanoseconds. `cut` converts them to the node's clock.
"""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from podgpu.model import ENDED_PID, HIDDEN_PID, Slice, Span, SpotLog, SwitchLog
from podgpu.sources.switches import layout

LONGEST_SWITCH_NS = 1_000_000  # ten times what a switch takes; a longer gap means that the card was idle
LARGEST_STEP_NS = 20_000_000  # between two readings the clocks of card and node drift apart by less
LARGEST_DOUBT_NS = 500_000
MOST_SLICES = 1_000_000  # if they are not taken for so long, they are lost


class CardClock(Struct, frozen=True, array_like=True, gc=False):
    """The card's time, and how far it is ahead of the node's, give or take `doubt_ns`."""

    now_ns: int
    ahead_ns: int
    doubt_ns: int = 0


class LogRecords(Struct, frozen=True, array_like=True, gc=False):
    """Records as the driver wrote them, and how many it dropped after them because the buffer was full."""

    records: bytes
    dropped: int


class CardRecords(Struct, frozen=True, array_like=True):
    """What the child process read of a card's log since its previous answer. With a `reason` there is no log.

    `began_ns` is when it was opened, by the card's clock. A switch is certainly in the log after `delay_ns`. Of a
    check only the first `checked_ns` count, and its moment was drawn from a time of `drawn_from_ns`.
    """

    uuid: str
    reason: str = ""
    call: str = ""
    detail: str = ""
    began_ns: int = 0
    delay_ns: int = 0
    clock: CardClock = CardClock(0, 0)
    drained: tuple[LogRecords, ...] = ()
    drawn_from_ns: int = 0
    checked_ns: int = 0


class CurrentContext(Struct, gc=False):
    pid: int
    context: int
    begin_ns: int


def spot_log(found: CardRecords) -> tuple[SpotLog, Counter[str]]:
    """Return what a check says, and what was odd in it."""
    builder = SliceBuilder(found.began_ns)
    log = builder.log(found)
    stands_for = found.drawn_from_ns / 1e9
    if log is None:
        return SpotLog(stands_for=stands_for, is_incomplete=bool(builder.counts)), builder.counts
    end_ns = log.begin_ns + found.checked_ns
    slices = tuple(
        Slice(piece.pid, piece.begin_ns, min(piece.end_ns, end_ns)) for piece in log.slices if piece.begin_ns < end_ns
    )
    return SpotLog(stands_for=stands_for, slices=slices, is_incomplete=bool(log.lost)), builder.counts


class SliceBuilder:
    """`counts` are errors and oddities since they were last cleared, by the reasons in operations.md."""

    def __init__(self, began_ns: int) -> None:
        self.counts: Counter[str] = Counter()
        self.began_ns = began_ns
        self._known_ns: int | None = None  # since when it is known which context was on the card
        self._last_ns = began_ns  # of the newest record with an exact stamp
        self._sequence: int | None = None
        self._current: CurrentContext | None = None
        self._lost_since_ns: int | None = None  # since when it is not known, until the next record
        self._ended_ns: int | None = None  # when the last context left the card, if no other has come since
        self._slices: list[Slice] = []
        self._lost: list[Span] = []
        self._starts: list[int] = []
        self._gaps: list[Span] = []  # between two contexts; no slice overlaps one
        self._clock: CardClock | None = None  # when it was read with least doubt

    def log(self, found: CardRecords) -> SwitchLog | None:
        """Take what was read, and return the log up to then."""
        for drained in found.drained:
            self.feed(drained.records, drained.dropped)
        return self.cut(found.clock, found.delay_ns)

    def feed(self, records: bytes, dropped: int) -> None:
        for kind, _, _, event, _, sequence, context, pid, _, gi, ci, stamp in layout.RECORD.iter_unpack(records):
            if kind not in layout.TYPES:
                self.counts["other_record"] += 1
            elif kind != layout.TYPE_WITHOUT_MIG and (gi, ci) != (layout.NO_INSTANCE, layout.NO_INSTANCE):
                self.counts["mig_record"] += 1
            else:
                self._follow(sequence)
                self._take(event, ENDED_PID if pid == layout.NO_PID else pid, context, stamp)
        if dropped:
            self.counts["overflow"] += dropped
            self._lose_track()
        if len(self._slices) > MOST_SLICES:
            self._lose(self._slices[0].begin_ns, self._slices[-1].end_ns)
            self._slices, self._starts, self._gaps = [], [], []

    def cut(self, clock: CardClock, delay_ns: int) -> SwitchLog | None:
        """Return the log up to `delay_ns` ago, in the node's time. None until the context on the card is known.

        If one of the clocks was set, the times of the slices are unknown, and the whole log is lost.
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
        if self._lost_since_ns is not None and self._lost_since_ns < until:
            self._lose(self._lost_since_ns, until)
            self._lost_since_ns = until
        lost, self._lost = _split(self._lost, until)
        # Gaps are cut where slices are, so that time on the card and between contexts is never more than there was.
        gaps, self._gaps = _split(self._gaps, until)
        return SwitchLog(
            begin_ns=begin - ahead_ns,
            end_ns=until - ahead_ns,
            slices=tuple(self._slices_until(until, ahead_ns)),
            lost=tuple(Span(span.begin_ns - ahead_ns, span.end_ns - ahead_ns) for span in lost),
            switches=self._switches_until(until),
            switching_ns=sum(gap.end_ns - gap.begin_ns for gap in gaps),
        )

    def _ahead(self, clock: CardClock) -> tuple[int, bool]:
        """Return how far the card's clock is ahead, and whether a clock was set. A doubtful answer changes nothing."""
        before, self._clock = self._clock or clock, clock
        is_step = abs(clock.ahead_ns - before.ahead_ns) > LARGEST_STEP_NS + clock.doubt_ns + before.doubt_ns
        if not is_step and clock.doubt_ns > max(LARGEST_DOUBT_NS, before.doubt_ns):
            self._clock = before
        return self._clock.ahead_ns, is_step

    def _follow(self, sequence: int) -> None:
        """Count the records that are missing before this one."""
        missing = (sequence - self._sequence - 1) & 0xFFFF if self._sequence is not None else 0
        self._sequence = sequence
        if missing:
            self.counts["lost_records"] += missing
            self._lose_track()

    def _take(self, event: int, pid: int, context: int, stamp: int) -> None:
        if pid == HIDDEN_PID:
            self.counts["hidden_record"] += 1
            stamp = max(stamp, self._last_ns) if stamp else 0  # the driver blurs it
        elif pid == ENDED_PID:
            self.counts["ended_record"] += 1
        if not stamp or stamp < self._last_ns:
            self.counts["bad_stamp"] += 1
            self._lose_track()
            self._last_ns = stamp or self._last_ns
            return
        # The log may have been cut at a later time already.
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
        if self._current:
            self.counts["unpaired"] += 1
            self._lose_track()
        self._found_again(stamp)
        if self._known_ns is None:
            self._known_ns = stamp
        self._rewind(stamp)
        self._starts.append(stamp)
        if self._ended_ns is not None and 0 < stamp - self._ended_ns <= LONGEST_SWITCH_NS:
            self._gaps.append(Span(max(self._ended_ns, self._known_ns), stamp))
        self._current, self._ended_ns = CurrentContext(pid, context, stamp), None

    def _rewind(self, stamp: int) -> None:
        """Take back what blurred stamps put after this time, so that no time counts twice."""
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
        current, self._current = self._current, None
        if self._known_ns is None:  # it was there before the log began
            self._known_ns = self.began_ns
            current = CurrentContext(pid, context, self.began_ns)
        elif current is None or current.context != context:
            self.counts["unpaired"] += self._lost_since_ns is None
            self._current = current
            self._lose_track()
            self._found_again(stamp)
            return
        self._ended_ns = max(stamp, current.begin_ns)
        # The process may have ended before the record was written, but the context is the same.
        owner = pid if current.pid == ENDED_PID else current.pid
        if stamp > current.begin_ns:
            self._slices.append(Slice(owner, current.begin_ns, stamp))

    def _lose_track(self) -> None:
        """Since the last record, or the beginning of the slice, the context on the card is unknown."""
        if self._lost_since_ns is None:
            self._lost_since_ns = self._current.begin_ns if self._current else self._last_ns
        self._current = self._ended_ns = None

    def _found_again(self, stamp: int) -> None:
        if self._lost_since_ns is not None:
            self._lose(self._lost_since_ns, max(stamp, self._lost_since_ns + 1))
            self._lost_since_ns = None

    def _lose(self, begin_ns: int, end_ns: int) -> None:
        self._lost.append(Span(begin_ns, end_ns))

    def _slices_until(self, until: int, ahead: int) -> list[Slice]:
        """Take what is over. A slice that is not continues in the next log."""
        ready = [
            Slice(part.pid, part.begin_ns - ahead, min(part.end_ns, until) - ahead)
            for part in self._slices
            if part.begin_ns < until
        ]
        self._slices = [
            Slice(part.pid, max(part.begin_ns, until), part.end_ns) for part in self._slices if part.end_ns > until
        ]
        current = self._current
        if current and current.begin_ns < until:
            ready.append(Slice(current.pid, current.begin_ns - ahead, until - ahead))
            current.begin_ns = until
        return ready

    def _switches_until(self, until: int) -> int:
        left = [stamp for stamp in self._starts if stamp >= until]
        count, self._starts = len(self._starts) - len(left), left
        return count


def _split(spans: Sequence[Span], at_ns: int) -> tuple[list[Span], list[Span]]:
    """Return the parts before and after a time."""
    before = [Span(span.begin_ns, min(span.end_ns, at_ns)) for span in spans if span.begin_ns < at_ns]
    after = [Span(max(span.begin_ns, at_ns), span.end_ns) for span in spans if span.end_ns > at_ns]
    return before, after
