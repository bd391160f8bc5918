from datetime import UTC, datetime

import pytest

from podgpu.errors import UserError
from podgpu.option.times import calendar_period, parse_time, period, period_name
from podgpu.option.value import seconds

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("now", "2026-11-15T12:00:00+00:00"),
        ("90s", "2026-11-15T11:58:30+00:00"),
        ("12h", "2026-11-15T00:00:00+00:00"),
        ("7d", "2026-11-08T12:00:00+00:00"),
        ("2w", "2026-11-01T12:00:00+00:00"),
        ("2026-10", "2026-10-01T00:00:00+00:00"),
        ("2026-11-01", "2026-11-01T00:00:00+00:00"),
        ("2026-11-01T08:30", "2026-11-01T08:30:00+00:00"),
        ("2026-11-01T08:30:15Z", "2026-11-01T08:30:15+00:00"),
        ("2026-11-01T08:30+01:00", "2026-11-01T07:30:00+00:00"),
    ],
)
def test_times_as_people_write_them(text: str, meant: str) -> None:
    assert datetime.fromtimestamp(parse_time(text, NOW), UTC).isoformat() == meant


@pytest.mark.parametrize("text", ["", "yesterday", "7", "7days", "-7d", "2026-13", "2026-02-30", "01.11.2026"])
def test_anything_else_says_what_to_write(text: str) -> None:
    with pytest.raises(UserError, match="such as 7d or 12h, or a date"):
        parse_time(text, NOW)


def test_a_period_ends_now_at_the_latest() -> None:
    assert period("1d", "2027-01-01", NOW) == (NOW - 86400, NOW)


@pytest.mark.parametrize(("start", "end"), [("1d", "2d"), ("2027-01", "2027-02"), ("now", "now")])
def test_a_period_without_a_past_is_refused(start: str, end: str) -> None:
    with pytest.raises(UserError, match="give an earlier --from"):
        period(start, end, NOW)


@pytest.mark.parametrize("start", ["999999999d", "1969-12-31", "0001-01-01"])
def test_a_period_begins_in_1970_at_the_earliest(start: str) -> None:
    with pytest.raises(UserError, match="is before 1970; give a later --from"):
        period(start, "now", NOW)


def test_durations() -> None:
    texts = ("30m", "4h", "2d", "1.5d", "1w", "90", "500ms")
    assert [seconds(text) for text in texts] == [1800, 14_400, 172_800, 129_600, 604_800, 90, 0.5]
    with pytest.raises(UserError, match="such as 500ms, 30m or 2d"):
        seconds("half an hour")


@pytest.mark.parametrize(
    ("name", "start", "end", "called"),
    [
        ("last-month", "2026-10-01", "2026-11-01", "2026-10"),
        ("last-week", "2026-11-02", "2026-11-09", "2026-W45"),
        ("last-day", "2026-11-14", "2026-11-15", "2026-11-14"),
    ],
)
def test_the_last_period_of_the_calendar_that_is_over(name: str, start: str, end: str, called: str) -> None:
    times = (parse_time(start, NOW), parse_time(end, NOW))
    assert calendar_period(name, NOW) == times
    assert period_name(*times) == called


def test_the_last_month_of_a_year_and_of_the_first_moment_of_a_month() -> None:
    assert period_name(*calendar_period("last-month", parse_time("2027-01-01", NOW))) == "2026-12"
    assert period_name(*calendar_period("last-month", parse_time("2028-03-31", NOW))) == "2028-02"
    assert period_name(*calendar_period("last-week", parse_time("2027-01-04", NOW))) == "2026-W53"


def test_any_other_period_is_named_by_its_times() -> None:
    times = (parse_time("2026-11-01T08:00", NOW), parse_time("2026-11-02T09:30", NOW))
    assert period_name(*times) == "20261101T080000Z-20261102T093000Z"
