"""Windows and log come each in its own time."""

import pytest

from podgpu.agent.switch_log import EvidenceBuffer
from podgpu.ledger.residency import Residency, residency
from podgpu.model import BusyWindow, Slice, Span, SwitchLog

MS = 1_000_000


def log(begin: int, end: int, *slices: Slice, lost: tuple[Span, ...] = ()) -> SwitchLog:
    return SwitchLog(begin_ns=begin * MS, end_ns=end * MS, slices=slices, lost=lost)


def window(begin: int) -> BusyWindow:
    return BusyWindow(begin * MS, (begin + 200) * MS, 100 * MS)


def test_a_window_waits_for_the_log_that_covers_it() -> None:
    desk = EvidenceBuffer()
    first = desk.take(log(0, 1100, Slice(7, 0, 1100 * MS)), [window(800), window(1000)])
    assert first.windows == (window(800),)
    second = desk.take(log(1100, 2000, Slice(8, 1100 * MS, 2000 * MS)), [window(1200)])
    assert second.windows == (window(1000), window(1200))
    assert [piece.pid for piece in second.slices] == [7, 8]


def test_what_was_before_the_log_is_not_known() -> None:
    found = EvidenceBuffer().take(log(500, 1000), [window(300)])
    assert found.blind == (Span(0, 500 * MS),)


def test_a_reader_that_was_away_leaves_a_hole() -> None:
    desk = EvidenceBuffer()
    desk.take(log(0, 1000), [])
    found = desk.take(log(3000, 4000), [])
    assert Span(1000 * MS, 3000 * MS) in found.blind


def test_a_window_may_come_a_second_late_and_no_later() -> None:
    for begin_ns, is_known in ((8_000 * MS, True), (8_000 * MS - 1, False)):
        desk, late = EvidenceBuffer(), BusyWindow(begin_ns, 8_200 * MS, 100 * MS)
        desk.take(log(0, 9_000, Slice(7, 0, 9_000 * MS)), [])
        found = desk.take(log(9_000, 10_000, Slice(7, 9_000 * MS, 10_000 * MS)), [late])
        proven = residency(found, {7: "host"})
        assert (proven.busy_ns, proven.blind_ns) == ((100 * MS, 0) if is_known else (0, 100 * MS))


HOUR = 3_600_000


class Clocks:
    """A card on which a process runs all the time. Each second there is a log, and five windows, some of them late."""

    def __init__(self, late: int = 2) -> None:
        self.desk = EvidenceBuffer()
        self.set_by = 0  # milliseconds, of the node's clock
        self._late = late
        self._windows: list[BusyWindow] = []

    def second(self, number: int, set_by: int | None = None) -> Residency:
        """Play a second; with `set_by` the clock is set when its windows are read and its log is not."""
        begin = 1000 * number + self.set_by
        self._windows += [window(begin + 200 * place) for place in range(5)]
        ready, self._windows = self._windows[: -self._late], self._windows[-self._late :]
        self.set_by = self.set_by if set_by is None else set_by
        begin = 1000 * number + self.set_by
        found = log(begin, begin + 1000, Slice(7, begin * MS, (begin + 1000) * MS))
        return residency(self.desk.take(found, ready), {7: "host"})


@pytest.mark.parametrize("back", [-100, -1_000, -10_000, -HOUR])
@pytest.mark.parametrize("late", [1, 4])
def test_a_clock_that_is_set_back_costs_two_seconds_of_proof(back: int, late: int) -> None:
    clocks = Clocks(late)
    before = [clocks.second(number) for number in range(5000, 5005)]
    assert before[-1].busy_ns == 500 * MS
    clocks.second(5005, set_by=back)
    after = [clocks.second(number) for number in range(5006, 5030)]
    assert sum(second.busy_ns for second in after[:2]) <= 1000 * MS
    assert all((second.busy_ns, second.blind_ns) == (500 * MS, 0) for second in after[2:])
    assert len(clocks.desk.windows) <= late + 1


def test_a_window_by_a_clock_that_was_set_back_is_never_proven() -> None:
    """When the clock has caught up, its time is that of another second."""
    clocks = Clocks()
    for number in range(5000, 5005):
        clocks.second(number)
    clocks.desk.take(log(5_005_000, 5_006_000), [BusyWindow(5_005_900 * MS, 5_006_100 * MS, 77 * MS)])
    clocks.second(5006, set_by=-10_000)
    seen = [clocks.second(number) for number in range(5007, 5030)]
    assert all(second.busy_ns % (100 * MS) == 0 for second in seen)


def test_windows_that_were_stamped_before_the_clock_was_set_back_hide_no_slices() -> None:
    """Such a window may also come after the log has the new time."""
    desk = EvidenceBuffer()
    desk.take(log(0, 10_000, Slice(7, 0, 10_000 * MS)), [window(HOUR)])
    desk.take(log(10_000, 11_000, Slice(7, 10_000 * MS, 11_000 * MS)), [])
    found = desk.take(log(11_000, 12_000, Slice(8, 11_000 * MS, 12_000 * MS)), [window(10_900)])
    assert found.windows == (window(10_900),)
    assert [piece.pid for piece in found.slices] == [7, 8]
    assert residency(found, {7: "host", 8: "unknown"}).busy_ns == 100 * MS
    assert desk.windows == []


def test_clocks_may_drift_apart_by_20_ms() -> None:
    for begin_ns, is_kept in ((9_980 * MS, True), (9_980 * MS - 1, False)):
        desk = EvidenceBuffer()
        desk.take(log(0, 10_000, Slice(7, 0, 10_000 * MS)), [window(9_900)])
        following = SwitchLog(begin_ns=begin_ns, end_ns=11_000 * MS, slices=(Slice(7, begin_ns, 11_000 * MS),))
        found = desk.take(following, [])
        assert (found.windows == (window(9_900),)) == is_kept


def test_nothing_is_kept_for_ever() -> None:
    desk = EvidenceBuffer()
    for second in range(100):
        begin = second * 1000
        piece = Slice(7, begin * MS, (begin + 1000) * MS)
        span = Span(begin * MS, (begin + 1) * MS)
        desk.take(log(begin, begin + 1000, piece, lost=(span,)), [window(begin + 300)])
    assert len(desk.slices) <= 3
    assert len(desk.blind) <= 3
    assert not desk.windows
