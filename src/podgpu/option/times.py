"""Times as people write them."""

import re
from datetime import UTC, datetime

from podgpu.errors import UserError

_AGO = re.compile(r"([0-9]{1,9})(s|m|h|d|w)")
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def moment(text: str, now: float) -> float:
    """Parse `7d` (ago), `now`, `2026-11`, `2026-11-01` or `2026-11-01T08:00`, in UTC if it names no other zone."""
    if text == "now":
        return now
    if ago := _AGO.fullmatch(text):
        return now - int(ago[1]) * _SECONDS[ago[2]]
    try:
        found = datetime.fromisoformat(f"{text}-01" if _MONTH.fullmatch(text) else text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise UserError(
            f"{text!r} is not a time; write how long ago, such as 7d or 12h, or a date such as 2026-11-01 or "
            "2026-11-01T08:00+01:00"
        ) from None


def seconds(text: str) -> float:
    """Parse a duration such as `30m` or `2d`."""
    found = _AGO.fullmatch(text)
    if not found:
        raise UserError(f"{text!r} is not a duration; write it like 30m, 4h or 2d")
    return float(int(found[1]) * _SECONDS[found[2]])


def period(start: str, end: str, now: float) -> tuple[float, float]:
    """Return the two times. What is to come cannot be reported on."""
    begins, ends = moment(start, now), min(moment(end, now), now)
    if begins >= ends:
        raise UserError(
            f"--from={start} is not before --to={end}, or is in the future; give an earlier --from"
        )
    return begins, ends
