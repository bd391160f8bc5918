"""How a device is divided: by claims, by MIG instances, and in integers whose parts add up to the whole."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from podgpu.ledger.cycle import TenantKey
from podgpu.model import Claim, Device, Instance, value_of
from podgpu.model.kube import grouped, total

PARTS = 1_000_000  # shares are counted in millionths, so that they add up exactly
K = TypeVar("K")


class Reserved(Struct, frozen=True, kw_only=True, gc=False):
    """By tenant: its share of the whole card in parts, its memory limit, and the claims they come from.

    A tenant with claims and no share holds something of unknown size: a part of the card, or a MIG instance.
    """

    shares: dict[TenantKey, int]
    memory_limits: dict[TenantKey, int]
    claims: dict[TenantKey, list[Claim]]

    @property
    def are_sized(self) -> bool:
        return len(self.shares) == len(self.claims)


def reserved(claims: Iterable[Claim], device: Device) -> Reserved:
    """Add up the claims on one card. A claim on an instance is a claim on that instance's part of the card."""
    sizes: dict[str, int | None] = {instance.mig.uuid: parts_of(device, instance) for instance in device.instances}
    sizes[""] = PARTS
    found = Reserved(shares={}, memory_limits={}, claims={})
    unsized: set[TenantKey] = set()
    for claim in claims:
        if claim.mig not in sizes:
            continue
        tenant, size = TenantKey(claim.gpu, claim.mig, claim.container), sizes[claim.mig]
        if size is None or claim.share <= 0:  # a claim of 0 is one of unknown size
            unsized.add(tenant)
        else:
            share = max(1, round(min(claim.share, 1.0) * size))
            found.shares[tenant] = min(PARTS, found.shares.get(tenant, 0) + share)
        found.claims.setdefault(tenant, []).append(claim)
        if claim.memory_limit_bytes is not None:
            found.memory_limits[tenant] = found.memory_limits.get(tenant, 0) + claim.memory_limit_bytes
    for tenant in unsized:
        found.shares.pop(tenant, None)
    return found


class GpuInstance(Struct, frozen=True, kw_only=True, gc=False):
    """`migs` are the UUIDs of its compute instances, `parts` is their share of the card. Unknown is None.

    A dcgm-exporter page does not give the number of multiprocessors, so the size of its instances is unknown.
    """

    migs: frozenset[str]
    parts: int | None
    active: float | None
    sm_active: float | None

    @property
    def activity(self) -> int | None:
        """Parts of the whole card's time."""
        if self.active is None or self.parts is None:
            return None
        return round(min(self.active, 1.0) * self.parts)


def gpu_instances(device: Device) -> list[GpuInstance]:
    by_id = grouped(device.instances, lambda instance: instance.mig.gpu_instance_id)
    return [_gpu_instance(device, group) for group in by_id.values()]


def _gpu_instance(device: Device, compute: Sequence[Instance]) -> GpuInstance:
    """Its compute instances share one set of profiling counters: the first that reports them speaks for all."""
    readings = [reading for instance in compute for reading in instance.readings]
    return GpuInstance(
        migs=frozenset(instance.mig.uuid for instance in compute),
        parts=total(parts_of(device, instance) for instance in compute),
        active=value_of(readings, "graphics_engine_active_ratio"),
        sm_active=value_of(readings, "sm_active_ratio"),
    )


def parts_of(device: Device, instance: Instance) -> int | None:
    """Return an instance's share of its card by multiprocessors, None where their number is not known."""
    own = instance.mig.multiprocessors
    whole = device.gpu.multiprocessors or total(other.mig.multiprocessors for other in device.instances)
    return min(PARTS, own * PARTS // whole) if own and whole else None


def split(total: int, weights: Mapping[K, int]) -> dict[K, int]:
    """Divide `total` by weight, by largest remainder. Ties are broken by key, so order does not matter.

    Without any weight all parts are 0.
    """
    whole = sum(weights.values())
    if whole <= 0:
        return dict.fromkeys(weights, 0)
    parts = {key: total * weight // whole for key, weight in weights.items()}
    left = total - sum(parts.values())
    if left:  # keys of different kinds cannot be compared, their texts can
        by_remainder = sorted(weights, key=lambda key: (-(total * weights[key] % whole), str(key)))
        for key in by_remainder[:left]:
            parts[key] += 1
    return parts


def within(total: int, wanted: Mapping[K, int]) -> tuple[dict[K, int], int]:
    """Give each what it wants if that is no more than `total`, else their shares of it; return what is left."""
    if sum(wanted.values()) > total:
        return split(total, wanted), 0
    return dict(wanted), total - sum(wanted.values())
