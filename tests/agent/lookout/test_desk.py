"""Windows and log come each in its own time."""

from podgpu.agent.lookout.desk import Desk
from podgpu.model import BusyWindow, Slice, Span, SwitchLog

MS = 1_000_000


def log(begin: int, end: int, *slices: Slice, lost: tuple[Span, ...] = ()) -> SwitchLog:
    return SwitchLog(begin_ns=begin * MS, end_ns=end * MS, slices=slices, lost=lost)


def window(begin: int) -> BusyWindow:
    return BusyWindow(begin * MS, (begin + 200) * MS, 100 * MS)


def test_a_window_waits_for_the_log_that_covers_it() -> None:
    desk = Desk()
    first = desk.take(log(0, 1100, Slice(7, 0, 1100 * MS)), [window(800), window(1000)])
    assert first.windows == (window(800),)
    second = desk.take(log(1100, 2000, Slice(8, 1100 * MS, 2000 * MS)), [window(1200)])
    assert second.windows == (window(1000), window(1200))
    assert [one.pid for one in second.slices] == [7, 8]


def test_what_was_before_the_log_is_not_known() -> None:
    found = Desk().take(log(500, 1000), [window(300)])
    assert found.blind == (Span(0, 500 * MS),)


def test_a_reader_that_was_away_leaves_a_hole() -> None:
    desk = Desk()
    desk.take(log(0, 1000), [])
    found = desk.take(log(3000, 4000), [])
    assert Span(1000 * MS, 3000 * MS) in found.blind


def test_nothing_is_kept_for_ever() -> None:
    desk = Desk()
    for second in range(100):
        begin = second * 1000
        one = Slice(7, begin * MS, (begin + 1000) * MS)
        span = Span(begin * MS, (begin + 1) * MS)
        desk.take(log(begin, begin + 1000, one, lost=(span,)), [window(begin + 300)])
    assert len(desk.slices) <= 3
    assert len(desk.blind) <= 3
    assert not desk.windows
