"""How busy a card and everybody on it was, and the power they drew, all of one period.

Where the driver's samples leave a doubt, the period is the last full minute, and the doubt stands beside the number.
Else it is the time since the previous reading. A tenant that came within the minute has no number of it yet: until it
has, the whole card goes by the previous reading.
"""

from msgspec.structs import replace

from podgpu.insight.placement import reading
from podgpu.model import Band, Card, CardUse, Rest, Tenant, Use

MINUTE, READING = "minute", "reading"
_KILOWATT = 1000.0  # a millijoule in a microsecond


def with_use(card: Card) -> Card:
    if card.fault is not None:  # nobody knows, whatever was known before
        return replace(
            card,
            use=None,
            tenants=tuple([replace(tenant, use=None) for tenant in card.tenants]),
            rest=tuple([replace(rest, use=None) for rest in card.rest]),
        )
    is_minute = _is_minute(card)
    return replace(
        card,
        use=_of_card(card, is_minute=is_minute),
        tenants=tuple([replace(one, use=_of_tenant(one, card, is_minute=is_minute)) for one in card.tenants]),
        rest=tuple([replace(one, use=_of_rest(one, card, is_minute=is_minute)) for one in card.rest]),
    )


def _is_minute(card: Card) -> bool:
    bands = [tenant.booking.band for tenant in card.tenants]
    whole = card.balance.band if card.balance else None
    return whole is not None and None not in bands and any(band and band.is_wide for band in bands)


def _of_card(card: Card, *, is_minute: bool) -> CardUse:
    balance, power = card.balance, reading(card.readings, "power_watts")
    if is_minute and balance is not None and balance.band is not None:
        use = of_band(balance.band, card)
        return CardUse(period=MINUTE, ratio=use.ratio, watts=power if use.watts is None else use.watts)
    ratio = balance.busy_ratio if balance else None
    if ratio is None:  # it will do where nothing is booked
        ratio = reading(card.readings, "utilization_ratio")
    return CardUse(period=READING, ratio=ratio, watts=power)


def _of_tenant(tenant: Tenant, card: Card, *, is_minute: bool) -> Use:
    booking = tenant.booking
    return _chosen(Use(booking.sm_ratio, watts=booking.power_watts), booking.band, card, is_minute=is_minute)


def _of_rest(rest: Rest, card: Card, *, is_minute: bool) -> Use:
    return _chosen(Use(rest.sm_ratio, watts=rest.power_watts), rest.band, card, is_minute=is_minute)


def _chosen(now: Use, band: Band | None, card: Card, *, is_minute: bool) -> Use:
    if not is_minute:
        return now
    return of_band(band, card) if band is not None else Use()


def of_band(band: Band, card: Card) -> Use:
    if not band.elapsed_us:
        return Use()
    watts = band.booked_mj / band.elapsed_us * _KILOWATT if card.ability.counts_energy else None
    ratio = band.ratio(band.booked_us)
    if not band.is_wide:
        return Use(ratio, watts=watts)
    return Use(ratio, band.ratio(band.least_us), band.ratio(band.most_us), watts)
