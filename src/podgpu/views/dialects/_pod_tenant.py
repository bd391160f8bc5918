"""A pod's container on a card, with the numbers that several dialects derive from the two."""

from collections import Counter
from collections.abc import Iterable, Iterator
from math import isfinite

from msgspec import Struct

from podgpu.insight.tenants import is_outsider
from podgpu.model import Card, Claim, ContainerRef, Gpu, Instance, Reading, Snapshot, Tenant


class PodTenant(Struct, frozen=True):
    """A tenant of a card. The device it was given is the card, or one of its MIG instances."""

    card: Card
    tenant: Tenant

    @property
    def gpu(self) -> Gpu:
        return self.card.gpu

    @property
    def container(self) -> ContainerRef:
        return self.tenant.container

    @property
    def claims(self) -> tuple[Claim, ...]:
        return self.tenant.claims

    @property
    def mig(self) -> str:
        return self.tenant.mig

    @property
    def uuid(self) -> str:
        """UUID of the device it was given: that of an instance, not of its card."""
        return self.mig or self.gpu.uuid

    @property
    def instance(self) -> Instance | None:
        return next((instance for instance in self.card.instances if instance.mig.uuid == self.mig), None)

    @property
    def memory_bytes(self) -> int | None:
        measured = self.tenant.booking.memory_bytes
        return 0 if measured is None and self.tenant.idle is True else measured

    @property
    def sm_ratio(self) -> float | None:
        """Part of the device it was given.

        On a MIG instance it is the activity of the whole GPU instance, with all its compute instances.
        """
        booking = self.tenant.booking
        booked = booking.instance_ratio if self.mig else booking.sm_ratio
        if booked is None:
            return 0.0 if self.tenant.idle is True else None
        times = self._times_own_size
        return min(1.0, booked * times) if isfinite(booked) and times is not None else None

    @property
    def card_ratio(self) -> float | None:
        """The same as a part of the whole card."""
        sm_ratio, part = self.sm_ratio, self.part
        return None if sm_ratio is None or part is None else sm_ratio * part

    @property
    def part(self) -> float | None:
        """How much of the card the device is, by multiprocessors."""
        if not self.mig:
            return 1.0
        instance = self.instance
        own = instance.mig.multiprocessors if instance else None
        whole = self.gpu.multiprocessors
        return min(1.0, own / whole) if own and whole else None

    @property
    def _times_own_size(self) -> float | None:
        """How many times larger its GPU instance is than the device. None if that is unknown."""
        instance = self.instance
        if instance is None:
            return 1.0
        own = instance.mig
        beside = [
            instance.mig for instance in self.card.instances if instance.mig.gpu_instance_id == own.gpu_instance_id
        ]
        if beside == [own]:
            return 1.0
        sizes = [mig.multiprocessors or 0 for mig in beside]
        return sum(sizes) / (own.multiprocessors or 0) if all(sizes) else None

    def reading(self, metric: str) -> float | None:
        """What the device it was given reports about itself."""
        device = self.instance if self.mig else self.card
        return None if device is None else reading(device.readings, metric)


def pod_tenants(snapshot: Snapshot) -> Iterator[PodTenant]:
    """Yield the pods' containers that hold or use a card, by card, instance and container.

    Tenants outside Kubernetes have no pod and are left out.
    """
    for card in snapshot.cards:
        for tenant in card.tenants:
            if (tenant.claims or tenant.running) and not is_outsider(tenant.container):
                yield PodTenant(card, tenant)


def card_names(snapshot: Snapshot, prefix: str = "") -> dict[str, str]:
    """Name each card by its index, or by its UUID if another card has the same index: two must not become one.

    Such cards come from several pages, each of which counts its own cards from 0.
    """
    bearers = Counter(card.gpu.index for card in snapshot.cards)
    gpus = [card.gpu for card in snapshot.cards]
    return {gpu.uuid: f"{prefix}{gpu.index}" if bearers[gpu.index] == 1 else gpu.uuid for gpu in gpus}


def reading(readings: Iterable[Reading], metric: str, labels: tuple[str, ...] = ()) -> float | None:
    found = (reading.value for reading in readings if (reading.metric, reading.labels) == (metric, labels))
    return next((value for value in found if isfinite(value)), None)


def percent(ratio: float | None) -> float | None:
    """None also if it is too large for a number."""
    return None if ratio is None or not isfinite(ratio * 100) else round(ratio * 100, 6)
