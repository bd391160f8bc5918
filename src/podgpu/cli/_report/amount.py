"""Hours, kilowatt-hours and money as a person reads them."""

from podgpu.views.glance import UNKNOWN


def amount(value: float | None) -> str:
    """Two digits behind the point, and for less than 1 three digits that count."""
    if value is None:
        return UNKNOWN
    return f"{value:.2f}" if value == 0 or abs(value) >= 1 else f"{value:.3g}"


def money(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f}"
