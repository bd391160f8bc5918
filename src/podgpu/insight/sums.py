"""Sums over cards, and over what a namespace, a workload or a team has of them. The same for every surface."""

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from msgspec.structs import astuple, replace

from podgpu.insight.tenants import (
    IDLE,
    NOTHING,
    UNKNOWN,
    WHOLE,
    NodeCard,
    Placement,
    held_share,
    is_holder,
    placements,
    reading,
)
from podgpu.model import Card, CardUse, FreeInstances, Sums, Tenant, Use
from podgpu.model.document import LARGEST_FLOAT, LARGEST_INT
from podgpu.model.kube import total_of_known

DIGITS = 12  # enough to cut the noise of binary fractions, and too many to change what is written


def of_cards(cards: Iterable[NodeCard]) -> Sums:
    """Sum up cards, with all tenants on them."""
    all_cards = list(cards)
    heard = [on for on in all_cards if not on.is_dark]
    up = [on for on in heard if on.card.fault is None]
    fresh = [on for on in up if on.is_fresh]
    cordoned = [on for on in up if on.is_cordoned]
    usable = [on for on in up if not on.is_cordoned and not _is_undivided(on.card)]
    free = [(on.card, _free(on.card)) for on in usable]
    is_heard = bool(heard) or not all_cards
    memory = [memory_used(on.card) for on in fresh]
    held = held_sums(placements(all_cards))
    if not is_heard:  # nobody knows who uses a dark card, though nobody held it
        held = replace(held, unused_gpus=None, unused_pods=None)
    return replace(
        _with_use(held, [on.card.use for on in fresh], len(up)),
        gpus=len(all_cards),
        dark_gpus=len(all_cards) - len(heard),
        lost_gpus=len(heard) - len(up),
        free_gpus=_rounded(sum((share for _, share in free), NOTHING)) if is_heard else None,
        fragmented_gpus=_rounded(sum((share for card, share in free if card.tenants), NOTHING)) if is_heard else None,
        cordoned_gpus=_rounded(sum((_free(on.card) for on in cordoned), NOTHING)) if cordoned else None,
        free_whole_gpus=sum(not on.card.tenants and not on.card.instances for on in usable) if is_heard else None,
        free_instances=_free_instances(usable),
        memory_used_bytes=_whole(memory),
        unknown_memory=memory.count(None),
        memory_total_bytes=_whole(reading(on.card.readings, "memory_total_bytes") for on in fresh),
        power_limit_watts=_added(reading(on.card.readings, "power_limit_watts") for on in fresh),
    )


def of_placements(places: Sequence[Placement]) -> Sums:
    """Sum up what a group of tenants has of its cards."""
    heard = [place for place in places if not place.on.is_dark]
    fresh = [place for place in heard if place.on.is_fresh and place.on.card.fault is None]
    memory = [place.tenant.booking.memory_bytes for place in fresh]
    missing = [place for place in fresh if place.tenant.booking.memory_bytes is None and not place.tenant.idle]
    return replace(
        _with_use(held_sums(places), [place.tenant.use for place in fresh], len(fresh)),
        gpus=len({place.on.key for place in places}),
        dark_gpus=len({place.on.key for place in places if place.on.is_dark}),
        lost_gpus=len({place.on.key for place in heard if place.on.card.fault is not None}),
        memory_used_bytes=_whole(memory),
        unknown_memory=len(missing),
        memory_total_bytes=_whole(memory_room(place.tenant, place.on.card) for place in fresh),
    )


def _with_use(held: Sums, uses: Sequence[Use | CardUse | None], number: int) -> Sums:
    """Add busy time and power, as far as they are known. `number` is how many busy times there should be."""
    busy = [use.ratio for use in uses if use is not None and use.ratio is not None]
    watts = [use.watts if use else None for use in uses]
    return replace(
        held,
        busy_gpus=_rounded(sum(busy)) if busy else None,
        unknown_busy=number - len(busy),
        power_watts=_added(watts),
        unknown_power=watts.count(None),
    )


def added(parts: Iterable[Sums]) -> Sums:
    """Add up the sums of nodes. A pod is on one node, and so is a card, so nothing counts twice."""
    all_parts = list(parts)
    if not all_parts:
        return of_cards(())
    instances: Counter[str] = Counter()
    for part in all_parts:
        instances.update({free.profile: free.count for free in part.free_instances})
    columns = dict(zip(Sums.__struct_fields__, zip(*map(astuple, all_parts), strict=True), strict=True))
    del columns["free_instances"]
    fields: dict[str, Any] = {name: _added(column) for name, column in columns.items()}
    return Sums(**fields, free_instances=_listed(instances))


def seen_gpus(sums: Sums) -> int:
    """Of how many cards it is known how busy they are."""
    return (sums.gpus or 0) - sums.dark_gpus - sums.lost_gpus - sums.unknown_busy


def memory_room(tenant: Tenant, card: Card) -> float | None:
    """Return how much memory it may have: its limit, or all of its MIG instance or card."""
    if tenant.booking.memory_limit_bytes is not None:
        return tenant.booking.memory_limit_bytes
    instances = (instance.readings for instance in card.instances if instance.mig.uuid == tenant.mig)
    return reading(next(instances, card.readings), "memory_total_bytes")


def memory_used(card: Card) -> float | None:
    """Return what is in use, by the books or by the card itself."""
    booked = card.balance.memory_bytes if card.balance else None
    return reading(card.readings, "memory_used_bytes") if booked is None else booked


def held_sums(places: Iterable[Placement]) -> Sums:
    """Sum up what tenants hold, and whether they use it."""
    all_places = list(places)
    held = [(place, held_share(place.tenant, place.on.card)) for place in all_places if is_holder(place.tenant)]
    idle = [(place, share) for place, share in held if place.on.is_fresh and place.state == IDLE]
    unknown = {place.pod_key for place, _ in held if not _is_judged(place)}
    # A pod that idles somewhere idles, whatever else it holds. Where nothing was judged, nothing is known.
    is_known = not held or any(_is_judged(place) for place, _ in held)
    has_prices = any(place.cost_per_hour is not None for place, _ in held)
    return Sums(
        pods=len({place.pod_key for place in all_places}),
        allocated_gpus=_rounded(sum((share or NOTHING for _, share in held), NOTHING)),
        unknown_shares=sum(share is None for _, share in held),
        unused_gpus=_rounded(sum((share or NOTHING for _, share in idle), NOTHING)) if is_known else None,
        unused_pods=len({place.pod_key for place, _ in idle}) if is_known else None,
        unknown_pods=len(unknown),
        cost_per_hour=(_added(place.cost_per_hour for place, _ in held) or 0.0) if has_prices else None,
        unused_cost_per_hour=(_added(place.cost_per_hour for place, _ in idle) or 0.0)
        if has_prices and is_known
        else None,
        unused_cost=(_added(place.idle_cost for place, _ in idle) or 0.0) if has_prices and is_known else None,
    )


def _is_judged(place: Placement) -> bool:
    """Whether it is known if it uses what it holds."""
    return place.on.is_fresh and place.state not in ("", UNKNOWN)


def _is_undivided(card: Card) -> bool:
    """Whether a card is in MIG mode and no instances are known. As it is, no pod can be given any of it."""
    return card.gpu.mig_enabled and not card.instances


def _free(card: Card) -> Fraction:
    """The free part of a card, as far as shares are known."""
    shares = [held_share(tenant, card) or NOTHING for tenant in card.tenants]
    return max(NOTHING, WHOLE - sum(shares, NOTHING))


def _free_instances(cards: Iterable[NodeCard]) -> tuple[FreeInstances, ...]:
    found: Counter[str] = Counter()
    for on in cards:
        held = {tenant.mig for tenant in on.card.tenants}
        found.update(instance.mig.profile for instance in on.card.instances if instance.mig.uuid not in held)
    return _listed(found)


def _listed(found: Counter[str]) -> tuple[FreeInstances, ...]:
    return tuple(FreeInstances(profile, count) for profile, count in sorted(found.items()) if count)


def _added(values: Iterable[float | None]) -> float | None:
    found = total_of_known(values)
    if found is None:
        return None
    return _integer(found) if isinstance(found, int) else _rounded(found)


def _whole(values: Iterable[float | None]) -> int | None:
    found = total_of_known(values)
    return None if found is None else _integer(found)


# A damaged node may report more than a document can hold. The sums of its cluster must stay readable.
def _integer(value: float) -> int:
    return max(-LARGEST_INT, min(int(value), LARGEST_INT))


def _rounded(value: float | Fraction) -> float:
    return max(-LARGEST_FLOAT, min(round(float(value), DIGITS), LARGEST_FLOAT))
