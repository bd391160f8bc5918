"""Whose pod a row names, and how a shared card is split among those on it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf

from podgpu.model import Booking, Claim, ContainerRef, Tenant, Workload

DYNAMIC = "dra"  # the sharing system of claims by dynamic resource allocation

MEMORY = "memory_used_bytes"
# Readings of a device that are also booked to containers. Energy is not split here: a row would change from the card's
# counter to a container's, and back, as others come and go. Busy time is booked by the activity of the graphics engine.
_BOOKED: Mapping[str, Callable[[Booking], float | None]] = {
    "utilization_ratio": lambda one: one.sm_ratio,
    "graphics_engine_active_ratio": lambda one: one.sm_ratio,
    MEMORY: lambda one: one.memory_bytes,
    "power_watts": lambda one: one.power_watts,
}


@dataclass(frozen=True, slots=True)
class Occupant:
    """One container, by name, on one card or GPU instance.

    It can be several tenants: it may hold two compute instances, or its pod was made again under the same name.
    """

    tenants: tuple[Tenant, ...]

    @property
    def claim(self) -> Claim | None:
        return next((claim for tenant in self.tenants for claim in tenant.claims), None)

    @property
    def container(self) -> ContainerRef:
        claim = self.claim
        return claim.container if claim else self.tenants[0].container

    @property
    def workload(self) -> Workload | None:
        return next((one.workload for one in self.tenants if one.container == self.container), None)

    def used(self, metric: str) -> float | None:
        """What is booked to it of a device's reading, in base units. None if that is unknown."""
        values = (_BOOKED[metric](one.booking) for one in self.tenants)
        known = [value for value in values if value is not None and 0 <= value < inf]
        return float(sum(known)) if known else None


def is_booked(metric: str) -> bool:
    return metric in _BOOKED


def is_dynamic(present: Iterable[Occupant]) -> bool:
    """Whether several pods were given the device by dynamic resource allocation, which dcgm-exporter always splits."""
    claims = [claim for one in present if (claim := one.claim)]
    pods = {(one.container.namespace, one.container.pod) for one in claims if one.system == DYNAMIC}
    return len(pods) > 1


def occupants(tenants: Iterable[Tenant]) -> list[Occupant]:
    by_name: dict[tuple[str, str, str], list[Tenant]] = {}
    for tenant in tenants:
        one = tenant.container
        by_name.setdefault((one.namespace, one.pod, one.container), []).append(tenant)
    return [Occupant(tuple(group)) for group in by_name.values()]


def only_pod(present: Iterable[Occupant]) -> list[Claim]:
    """The claims of the only pod that was given the device, one for each of its containers.

    If several pods were given it, none: a row names no pod that is one of several.
    """
    claims = [claim for one in present if (claim := one.claim)]
    pods = {(claim.container.namespace, claim.container.pod) for claim in claims}
    return claims if len(pods) == 1 else []
