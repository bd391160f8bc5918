"""Whose pod a row names, and how a shared card is split among those on it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from podgpu.model import Booking, Claim, ContainerRef, Pod, Snapshot
from podgpu.views.dialects._dcgm.entity import Entity

Name = tuple[str, str, str]

# Readings of a device that are booked to containers too. Energy is not split here: a row would change from the card's
# counter to a container's, and back, as others come and go.
_BOOKED: Mapping[str, Callable[[Booking], float | None]] = {
    "utilization_ratio": lambda one: one.sm_ratio,
    "memory_used_bytes": lambda one: one.memory_bytes,
    "power_watts": lambda one: one.power_watts,
}


@dataclass(slots=True)
class Tenancy:
    """Who holds and who uses each card or MIG device."""

    pods: Mapping[str, Pod]
    _claims: dict[tuple[str, str], list[Claim]] = field(default_factory=dict)
    _bookings: dict[tuple[str, str], list[Booking]] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Tenancy":
        found = cls({pod.uid: pod for pod in snapshot.pods})
        for claim in snapshot.claims:
            found._claims.setdefault((claim.gpu, claim.mig), []).append(claim)
        for booking in snapshot.bookings:
            if not booking.ended and booking.container.pod:
                found._bookings.setdefault((booking.gpu, booking.mig), []).append(booking)
        return found

    def claims(self, entity: Entity) -> dict[Name, Claim]:
        """Return one claim for each container that was given the entity, or a part of it."""
        gpu = entity.device.gpu.uuid
        found = [claim for mig in entity.migs for claim in self._claims.get((gpu, mig), ())]
        return {_name(claim.container): claim for claim in reversed(found)}

    def holder(self, entity: Entity) -> Claim | None:
        """Return the claim of the only container that was given it. Of several, none is the one."""
        claims = list(self.claims(entity).values())
        return claims[0] if len(claims) == 1 else None

    def bookings(self, entity: Entity) -> dict[Name, list[Booking]]:
        gpu = entity.device.gpu.uuid
        found: dict[Name, list[Booking]] = {}
        for mig in entity.migs:
            for booking in self._bookings.get((gpu, mig), ()):
                found.setdefault(_name(booking.container), []).append(booking)
        return found


def is_booked(metric: str) -> bool:
    return metric in _BOOKED


def used(metric: str, bookings: Iterable[Booking]) -> float | None:
    """Return what was booked of a device's reading, in base units. None where nobody can say."""
    values = (_BOOKED[metric](one) for one in bookings)
    known = [value for value in values if value is not None and 0 <= value < inf]
    return float(sum(known)) if known else None


def _name(container: ContainerRef) -> Name:
    return container.namespace, container.pod, container.container
