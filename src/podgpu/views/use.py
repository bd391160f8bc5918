"""How busy a card and everybody on it was: for a screen, all of one period.

Where looks of the driver leave a doubt, that is the last full minute, and the doubt stands beside the number. Else it
is the time since the previous reading. A tenant that came within the minute has no number of it yet: until it has, the
whole card goes by the previous reading.
"""

from msgspec import Struct

from podgpu.model import Band, Card, Rest, Tenant
from podgpu.views.glance import UNKNOWN, percent

LEAST_SHOWN = 0.005  # of the card's time


class Use(Struct, frozen=True):
    """Parts of the whole card's time. `least` and `most` are the bounds, None where there is no doubt."""

    ratio: float | None = None
    least: float | None = None
    most: float | None = None

    @property
    def bounds(self) -> str:
        """Write `12–34`, without the percent sign; nothing where there is no doubt."""
        if self.least is None or self.most is None:
            return ""
        return f"{self.least * 100:.0f}–{self.most * 100:.0f}"

    @property
    def shows(self) -> bool:
        """Whether it would not be written as 0."""
        return self.ratio is not None and self.ratio >= LEAST_SHOWN

    def __str__(self) -> str:
        if self.ratio is None:
            return UNKNOWN
        return f"{percent(self.ratio)} ({self.bounds})" if self.bounds else percent(self.ratio)


class Uses:
    """Of one card. `reported` is what the card reports as its utilisation: it will do where nothing is booked."""

    def __init__(self, card: Card, reported: float | None = None) -> None:
        self._card = card
        self._reported = reported
        bands = [tenant.booking.band for tenant in card.tenants]
        whole = card.balance.band if card.balance else None
        self.is_minute = whole is not None and None not in bands and any(one and one.is_wide for one in bands)

    @property
    def of_card(self) -> Use:
        balance = self._card.balance
        if self.is_minute and balance is not None and balance.band is not None:
            return of_band(balance.band)
        ratio = balance.busy_ratio if balance else None
        return Use(self._reported if ratio is None else ratio)

    def of_tenant(self, tenant: Tenant) -> Use:
        return self._of(tenant.booking.sm_ratio, tenant.booking.band)

    def of_rest(self, rest: Rest) -> Use:
        return self._of(rest.sm_ratio, rest.band)

    def _of(self, ratio: float | None, band: Band | None) -> Use:
        if not self.is_minute:
            return Use(ratio)
        return of_band(band) if band is not None else Use()


def of_band(band: Band) -> Use:
    ratio = band.ratio(band.booked_us)
    if not band.is_wide:
        return Use(ratio)
    return Use(ratio, band.ratio(band.least_us), band.ratio(band.most_us))
