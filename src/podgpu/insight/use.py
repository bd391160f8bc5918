"""Whether a tenant uses what it holds. `--idle.after` is the only threshold."""

from msgspec import Struct
from msgspec.structs import replace

from podgpu.insight.placement import held_share, is_holder, reading
from podgpu.model import Band, Card, CardUse, Holding, Prices, Rest, Tenant, Use

WORKING, IDLE, WAITING, UNKNOWN = "working", "idle", "waiting", "unknown"
# How a state is known, in words. A sentence about the pod may end with them.
EVIDENCE = {
    "active": "it worked not long ago",
    "no_process": "it has no process on the card",
    "stopped": "its processes do nothing",
    "never_used": "no use of the card was seen",
    "unseen": "whether it has a process on the card is not known",
    "not_measured": "the card does not report who is at work",
    "card_silent": "the card does not answer",
    "start_unknown": "it is not known since when it holds the card",
    "watched_briefly": "the agent has not watched for long enough",
}


class InsightSettings(Struct, frozen=True, kw_only=True):
    """What conclusions depend on beside the facts."""

    idle_after: float  # seconds
    prices: Prices | None = None


def holding(
    tenant: Tenant, card: Card, now: float, watched_since: float | None, settings: InsightSettings
) -> Holding | None:
    """Return None if the tenant holds nothing."""
    if not is_holder(tenant):
        return None
    state, evidence, since = _judged(tenant, card, now, watched_since, settings.idle_after)
    cost = hourly_cost(tenant, card, settings.prices)
    return Holding(state=state, evidence=evidence, since=since, cost_per_hour=cost)


def hourly_cost(tenant: Tenant, card: Card, prices: Prices | None) -> float | None:
    price = prices.of(card.gpu.model) if prices else None
    share = held_share(tenant, card)
    return None if price is None or share is None else float(share) * price


def idle_seconds(found: Holding | None, now: float) -> float | None:
    """How long it has been idle; None in any other state."""
    if found is None or found.state != IDLE or found.since is None:
        return None
    return max(now - found.since, 0.0)


def _judged(
    tenant: Tenant, card: Card, now: float, watched_since: float | None, idle_after: float
) -> tuple[str, str, float | None]:
    if card.fault is not None:
        return UNKNOWN, "card_silent", None
    if not tenant.idle and tenant.booking.sm_ratio is None:
        is_missed = tenant.idle is None and card.ability.sees_processes
        return UNKNOWN, "unseen" if is_missed else "not_measured", None
    last = now if tenant.booking.sm_ratio and not tenant.idle else tenant.booking.last_active_at
    if last is not None:
        if now - last < idle_after:
            return WORKING, "active", None
        return IDLE, "no_process" if tenant.idle else "stopped", last
    return _never_used(tenant, now, watched_since, idle_after)


def _never_used(
    tenant: Tenant, now: float, watched_since: float | None, idle_after: float
) -> tuple[str, str, float | None]:
    """What was used before the agent began to watch is not known."""
    evidence = "no_process" if tenant.idle else "never_used"
    held = tenant.held_since
    if held is None:
        return UNKNOWN, "start_unknown", None
    since = held if watched_since is None else max(held, watched_since)
    if now - since >= idle_after:
        return IDLE, evidence, since
    if since == held:
        return WAITING, evidence, held
    return UNKNOWN, "watched_briefly", None


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
        tenants=tuple(
            [replace(tenant, use=_of_tenant(tenant, card, is_minute=is_minute)) for tenant in card.tenants]
        ),
        rest=tuple([replace(rest, use=_of_rest(rest, card, is_minute=is_minute)) for rest in card.rest]),
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
