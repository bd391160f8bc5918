"""A pod's container on a card, with the numbers that several dialects derive from the two."""

from collections import Counter
from collections.abc import Iterator
from math import isfinite

from msgspec import Struct

from podgpu.insight.tenants import is_outsider, reading
from podgpu.model import Card, Claim, ContainerRef, Gpu, Instance, Snapshot, Tenant


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
        """How busy it is, as a part of the device it was given.

        A MIG instance reports the activity of its whole GPU instance, with all compute instances.
        """
        booking = self.tenant.booking
        booked = booking.instance_ratio if self.mig else booking.sm_ratio
        if booked is None:
            return 0.0 if self.tenant.idle is True else None
        factor = self._gpu_instance_factor
        return min(1.0, booked * factor) if isfinite(booked) and factor is not None else None

    @property
    def card_ratio(self) -> float | None:
        """How busy it is, as a part of the whole card."""
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
    def _gpu_instance_factor(self) -> float | None:
        """How many times larger than the device its GPU instance is. None if that is unknown."""
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

    def share_of(self, claim: Claim) -> float | None:
        """The part of the card that a claim is for. None if it is unknown, which a share of 0 stands for."""
        part = self.part
        return None if part is None or not claim.share else claim.share * part

    def memory_of(self, claim: Claim) -> float | None:
        """The memory that a claim allows: its limit, else its share of the device. None if that is unknown."""
        if claim.memory_limit_bytes is not None:
            return claim.memory_limit_bytes
        whole = self.reading("memory_total_bytes")
        return whole * claim.share if whole is not None and claim.share else None


def pod_tenants(snapshot: Snapshot) -> Iterator[PodTenant]:
    """Yield the pods' containers that hold or use a card, by card, instance and container.

    Tenants outside Kubernetes have no pod and are left out.
    """
    for card in snapshot.cards:
        for tenant in card.tenants:
            if (tenant.claims or tenant.running) and not is_outsider(tenant.container):
                yield PodTenant(card, tenant)


def card_names(snapshot: Snapshot, prefix: str = "") -> dict[str, str]:
    """Name each card by its index, or by its UUID if another card has the same index.

    Such cards come from several pages, each of which counts its own cards from 0.
    """
    gpus = [card.gpu for card in snapshot.cards]
    cards = Counter(gpu.index for gpu in gpus)
    return {gpu.uuid: f"{prefix}{gpu.index}" if cards[gpu.index] == 1 else gpu.uuid for gpu in gpus}


def mib(size: float | None) -> int | None:
    return None if size is None else int(size) >> 20


def percent(ratio: float | None) -> float | None:
    """Return None also if it is too large for a float."""
    return None if ratio is None or not isfinite(ratio * 100) else round(ratio * 100, 6)
