"""How a device is divided: by claims, by MIG instances, and in integers whose parts add up to the whole."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from msgspec import Struct

from podgpu.ledger.cycle import TenantKey
from podgpu.model import Claim, Device, Instance
from podgpu.model.quantity import total

PARTS = 1_000_000  # shares are counted in millionths, so that they add up exactly


K = TypeVar("K")


class Reserved(Struct, frozen=True, kw_only=True, gc=False):
    """Shares of the whole card in parts, memory limits, and the claims they come from, by account.

    Whoever has a claim and no share holds a MIG instance of unknown size.
    """

    shares: dict[TenantKey, int]
    memory_limits: dict[TenantKey, int]
    claims: dict[TenantKey, list[Claim]]

    @property
    def are_sized(self) -> bool:
        return len(self.shares) == len(self.claims)


def reserved(claims: Iterable[Claim], instance_parts: Mapping[str, int | None]) -> Reserved:
    """Add up the claims on one card. A claim on an instance is a claim on that instance's part of the card."""
    shares: dict[TenantKey, int] = {}
    limits: dict[TenantKey, int] = {}
    by_account: dict[TenantKey, list[Claim]] = {}
    for claim in claims:
        if claim.mig and claim.mig not in instance_parts:
            continue
        account = TenantKey(claim.gpu, claim.mig, claim.container)
        card = instance_parts[claim.mig] if claim.mig else PARTS
        if card is not None:
            share = round(min(max(claim.share, 0.0), 1.0) * card)
            shares[account] = min(PARTS, shares.get(account, 0) + share)
        by_account.setdefault(account, []).append(claim)
        if claim.memory_limit_bytes is not None:
            limits[account] = limits.get(account, 0) + claim.memory_limit_bytes
    return Reserved(shares=shares, memory_limits=limits, claims=by_account)


class GpuInstance(Struct, frozen=True, kw_only=True, gc=False):
    """`migs` are the UUIDs of its compute instances, `parts` is their share of the card. Unknown is None.

    A dcgm-exporter page does not give the number of multiprocessors, so nobody knows how large its instances are.
    """

    migs: frozenset[str]
    parts: int | None
    active: float | None
    sm_active: float | None

    @property
    def activity(self) -> int | None:
        """Parts of the whole card's time."""
        return (
            None if self.active is None or self.parts is None else round(min(self.active, 1.0) * self.parts)
        )


def gpu_instances(device: Device) -> list[GpuInstance]:
    by_id: dict[int, list[Instance]] = {}
    for instance in device.instances:
        by_id.setdefault(instance.mig.gpu_instance_id, []).append(instance)
    return [
        GpuInstance(
            migs=frozenset(one.mig.uuid for one in group),
            parts=total(parts_of(device, one) for one in group),
            active=_spoken(group, "graphics_engine_active_ratio"),
            sm_active=_spoken(group, "sm_active_ratio"),
        )
        for group in by_id.values()
    ]


def parts_by_instance(device: Device) -> dict[str, int | None]:
    return {one.mig.uuid: parts_of(device, one) for one in device.instances}


def parts_of(device: Device, instance: Instance) -> int | None:
    """Return an instance's share of its card by multiprocessors, None where their number is not known."""
    own = instance.mig.multiprocessors
    whole = device.gpu.multiprocessors or total(one.mig.multiprocessors for one in device.instances)
    return min(PARTS, own * PARTS // whole) if own and whole else None


def _spoken(group: Iterable[Instance], metric: str) -> float | None:
    """One compute instance speaks for all."""
    return next((one.value for instance in group for one in instance.readings if one.metric == metric), None)


def split(total: int, weights: Mapping[K, int]) -> dict[K, int]:
    """Divide `total` by weight, by largest remainder. Equal remainders go by key, so order does not matter.

    Without any weight there is nobody to divide among, and all parts are 0.
    """
    whole = sum(weights.values())
    if whole <= 0:
        return dict.fromkeys(weights, 0)
    parts = {key: total * weight // whole for key, weight in weights.items()}
    left = total - sum(parts.values())
    if left:
        by_remainder = sorted(weights, key=lambda key: (-(total * weights[key] % whole), _order(key)))
        for key in by_remainder[:left]:
            parts[key] += 1
    return parts


def within(total: int, wanted: Mapping[K, int]) -> tuple[dict[K, int], int]:
    """Give each what it wants if that is no more than `total`, else their shares of it; return what is left."""
    if sum(wanted.values()) > total:
        return split(total, wanted), 0
    return dict(wanted), total - sum(wanted.values())


def _order(key: Any) -> Any:
    """Parties of different kinds cannot be compared with each other; their texts can."""
    return str(key)
