"""Whether a tenant uses what it holds. `--idle.after` is the only threshold."""

from msgspec import Struct

from podgpu.insight.placement import held_share, is_holder
from podgpu.model import Card, Holding, Prices, Tenant

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


class Terms(Struct, frozen=True, kw_only=True):
    """What conclusions depend on beside the facts."""

    idle_after: float  # seconds
    prices: Prices | None = None


def holding(
    tenant: Tenant, card: Card, now: float, watched_since: float | None, terms: Terms
) -> Holding | None:
    """Return None if the tenant holds nothing."""
    if not is_holder(tenant):
        return None
    state, evidence, since = _judged(tenant, card, now, watched_since, terms.idle_after)
    cost = hourly_cost(tenant, card, terms.prices)
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
