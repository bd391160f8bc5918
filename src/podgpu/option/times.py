"""Times and periods as people write them."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from podgpu.errors import UserError
from podgpu.option.value import seconds

_AGO = re.compile(r"[0-9]{1,9}(s|m|h|d|w)")
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")

# The first day of the period that contains a day.
CALENDAR: dict[str, Callable[[datetime], datetime]] = {
    "last-month": lambda today: today.replace(day=1),
    "last-week": lambda today: today - timedelta(days=today.weekday()),
    "last-day": lambda today: today,
}


def parse_time(text: str, now: float) -> float:
    """Parse `7d` (ago), `now`, `2026-11`, `2026-11-01` or `2026-11-01T08:00`, in UTC if it names no other zone."""
    if text == "now":
        return now
    if _AGO.fullmatch(text):
        return now - seconds(text)
    try:
        found = datetime.fromisoformat(f"{text}-01" if _MONTH.fullmatch(text) else text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise UserError(
            f"{text!r} is not a time; write how long ago, such as 7d or 12h, or a date such as 2026-11-01 or "
            "2026-11-01T08:00+01:00"
        ) from None


def utc_text(at: float, timespec: str = "minutes") -> str:
    """Write `2026-11-01T08:00Z`, which `parse_time` reads."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def period(start: str, end: str, now: float) -> tuple[float, float]:
    """Return the two times, of which none is in the future."""
    begins, ends = parse_time(start, now), min(parse_time(end, now), now)
    if begins >= ends:
        raise UserError(f"--from={start} is not before --to={end}, or is in the future; give an earlier --from")
    if begins < 0:
        raise UserError(f"--from={start} is before 1970; give a later --from")
    return begins, ends


def calendar_period(name: str, now: float) -> tuple[float, float]:
    """Return the times of the last complete month, week or day, in UTC."""
    first_of = CALENDAR[name]
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    end = first_of(today)
    return first_of(end - timedelta(days=1)).timestamp(), end.timestamp()


def period_name(start: float, end: float) -> str:
    """Name a period, for the name of a file: `2026-10`, `2026-W45`, `2026-11-05`, or both of its times."""
    begins = datetime.fromtimestamp(start, UTC)
    for name, pattern in (("last-month", "%Y-%m"), ("last-week", "%G-W%V"), ("last-day", "%Y-%m-%d")):
        if calendar_period(name, end) == (start, end):
            return begins.strftime(pattern)
    return "-".join(datetime.fromtimestamp(at, UTC).strftime("%Y%m%dT%H%M%SZ") for at in (start, end))
