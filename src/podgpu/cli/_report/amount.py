"""Hours, kilowatt-hours and money as a person reads them."""

from podgpu.views.glance import UNKNOWN

_LARGE = 1.0


def amount(value: float | None, total: float | None) -> str:
    """Write all values of a column with the same digits: more where their total is small."""
    if value is None:
        return UNKNOWN
    return f"{value:.4f}" if total is not None and abs(total) < _LARGE else f"{value:.2f}"


def hundredths(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f}"
