"""What the cards of a node come to, by model and namespace. Unknown makes a sum unknown, never smaller."""

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

from podgpu.model import Card, Tenant
from podgpu.views.glance import glance

Labels = tuple[str, ...]
NOTHING, WHOLE = Fraction(0), Fraction(1)
_PARTS = 1_000_000  # the books count shares in millionths


class Sums:
    """Sums by family and labels. One unknown addend makes the sum unknown."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Labels], float | Fraction | None] = {}

    def add(self, family: str, labels: Labels, value: float | Fraction | None) -> None:
        key = (family, labels)
        before = self._found.get(key, NOTHING)
        self._found[key] = None if before is None or value is None else before + value

    def known(self) -> Iterator[tuple[str, Labels, float]]:
        for (family, labels), value in self._found.items():
            if value is not None:
                yield family, labels, float(value)


def add_card(sums: Sums, node: str, card: Card, *, is_fresh: bool) -> None:
    """Of a node that is not fresh, only what it has and who was given it counts."""
    place = (node, card.gpu.model)
    sums.add("gpus", place, WHOLE)
    sums.add("faulty_gpus", place, float(card.fault is not None))
    for tenant in card.tenants:
        _add_share(sums, place, tenant, card, is_fresh=is_fresh)
    if card.fault is not None:
        return
    _add_free(sums, place, card)
    if is_fresh and card.readings:
        _add_use(sums, place, card)


def held(tenant: Tenant, card: Card) -> Fraction | None:
    """Return the share of the card that the tenant was given. None if its size is not known."""
    if not tenant.claims:
        return NOTHING
    if tenant.booking.allocated_ratio is not None:
        return _exact(tenant.booking.allocated_ratio)
    share = min(WHOLE, sum((_exact(claim.share) for claim in tenant.claims), NOTHING))
    if not tenant.mig:
        return share
    own = next((one.mig.multiprocessors for one in card.instances if one.mig.uuid == tenant.mig), None)
    return share * own / card.gpu.multiprocessors if own and card.gpu.multiprocessors else None


@lru_cache(maxsize=4096)
def _exact(share: float) -> Fraction:
    """Return what the number was before it was rounded to fit into a float: millionths, or a part such as a third."""
    return Fraction(share).limit_denominator(_PARTS)


def _add_share(sums: Sums, place: Labels, tenant: Tenant, card: Card, *, is_fresh: bool) -> None:
    if tenant.claims:
        key = (*place, tenant.container.namespace, tenant.claims[0].resource)
        sums.add("allocated_gpus", key, held(tenant, card))
        if is_fresh and tenant.idle is not None:
            sums.add("idle_gpus", key, held(tenant, card) if tenant.idle else NOTHING)


def _add_free(sums: Sums, place: Labels, card: Card) -> None:
    shares = [held(tenant, card) for tenant in card.tenants]
    known = [share for share in shares if share is not None]
    is_known = len(known) == len(shares)
    free = max(NOTHING, WHOLE - sum(known, NOTHING))
    sums.add("free_gpus", place, free if is_known else None)
    sums.add("fragmented_gpus", place, (free if free < WHOLE else NOTHING) if is_known else None)


def _add_use(sums: Sums, place: Labels, card: Card) -> None:
    seen, balance = glance(card.readings), card.balance
    busy = balance.busy_ratio if balance else None
    sums.add("busy_gpus", place, seen.utilization_ratio if busy is None else busy)
    sums.add("memory_total_bytes", place, seen.memory_total_bytes)
    sums.add("memory_used_bytes", place, seen.memory_used_bytes)
    sums.add("power_watts", place, seen.power_watts)
    for tenant in card.tenants:
        key, nothing = (*place, tenant.container.namespace), 0.0 if tenant.idle else None
        ratio, size = tenant.booking.sm_ratio, tenant.booking.memory_bytes
        sums.add("used_gpus", key, nothing if ratio is None else ratio)
        sums.add("used_memory_bytes", key, nothing if size is None else size)
    for rest in card.rest:
        if rest.sm_ratio is not None:
            sums.add("used_gpus", (*place, ""), rest.sm_ratio)
        if rest.memory_bytes is not None:
            sums.add("used_memory_bytes", (*place, ""), rest.memory_bytes)
