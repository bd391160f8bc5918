"""What a row is about: a card, or a GPU instance of a card that is split by MIG; and the containers on it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite

from msgspec.structs import replace

from podgpu.catalog.row import MIB, Metric, Unit
from podgpu.insight.tenants import is_outsider
from podgpu.model import UNKNOWN, Booking, Card, Claim, ContainerRef, Instance, Reading, Snapshot, Tenant, Workload
from podgpu.model.kube import grouped
from podgpu.views.dialects._dcgm.counters import DECIMALS, FRACTIONS, Counter
from podgpu.views.format import number_text

DYNAMIC = "dra"  # the sharing system of claims by dynamic resource allocation
LAST_XID = "xid_last_code"

_MEMORY = "memory_used_bytes"
# Readings of a device that are also booked to containers. Energy is not split here: a row would change from the card's
# counter to a container's, and back, as others come and go. Busy time is booked by the activity of the graphics engine.
_BOOKED: Mapping[str, Callable[[Booking], float | None]] = {
    "utilization_ratio": lambda booking: booking.sm_ratio,
    "graphics_engine_active_ratio": lambda booking: booking.sm_ratio,
    _MEMORY: lambda booking: booking.memory_bytes,
    "power_watts": lambda booking: booking.power_watts,
}
# DCGM repeats a card's value for each of its instances, but not these.
_CARD_ALONE = frozenset(
    {
        "utilization_ratio",
        "memory_utilization_ratio",
        "encoder_utilization_ratio",
        "decoder_utilization_ratio",
        "remapped_rows",
        "row_remap_pending",
        "row_remap_failed",
        "pcie_transmit_bytes_per_second",
        "pcie_receive_bytes_per_second",
    }
)
_COMPUTE_PART = re.compile(r"[0-9]+c\.")


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
        return next((tenant.workload for tenant in self.tenants if tenant.container == self.container), None)

    def used(self, counter: Counter) -> float | None:
        """What is booked to it of a device's value, in the counter's unit. None if that is unknown."""
        values = (_BOOKED[counter.rows[0].name](tenant.booking) for tenant in self.tenants)
        known = [value for value in values if value is not None and 0 <= value < inf]
        return printed(float(sum(known)), counter.unit) if known else None


@dataclass(frozen=True)
class Entity:
    """A card, or a GPU instance: `instances` are its compute instances, of which a card has none here."""

    card: Card
    instances: tuple[Instance, ...] = ()
    tenants: tuple[Tenant, ...] = ()

    @cached_property
    def occupants(self) -> list[Occupant]:
        """The pods' containers on it."""
        in_pods = (tenant for tenant in self.tenants if not is_outsider(tenant.container))
        return [Occupant(tuple(group)) for group in grouped(in_pods, lambda tenant: tenant.container.names).values()]

    @property
    def claims(self) -> list[Claim]:
        """A claim of each container that has any."""
        return [claim for occupant in self.occupants if (claim := occupant.claim)]

    @property
    def only_pod(self) -> list[Claim]:
        """The claims if a single pod was given the device, else none: a row names no pod that is one of several."""
        return self.claims if len(_pods(self.claims)) == 1 else []

    @property
    def is_dynamic(self) -> bool:
        """Whether several pods were given the device by DRA. dcgm-exporter always splits such devices."""
        return len(_pods(claim for claim in self.claims if claim.system == DYNAMIC)) > 1

    @property
    def instance_id(self) -> str:
        """The number of the GPU instance; empty for a whole card, or if it is not known."""
        return number_text(self.instances[0].mig.gpu_instance_id) if self.instances else ""

    @property
    def profile(self) -> str:
        """The profile of the GPU instance. That of a compute instance has a prefix such as `1c.`."""
        return _COMPUTE_PART.sub("", self.instances[0].mig.profile, count=1) if self.instances else ""

    def is_booked(self, counter: Counter) -> bool:
        """Whether podgpu books this value to containers. On a GPU instance that is memory alone."""
        name = counter.rows[0].name
        return name == _MEMORY if self.instances else name in _BOOKED

    def values(self, counter: Counter) -> dict[tuple[str, ...], float]:
        """The values in the counter's unit, by the values of the row's own labels. Most rows have no such labels."""
        totals: dict[tuple[str, ...], float] = {}
        for row in counter.rows:
            fitting = (reading for reading in self._readings(row) if _fits(reading, row))
            by_labels = {reading.labels if row.own_labels else (): reading.value for reading in fitting}
            for labels, value in by_labels.items():
                totals[labels] = totals.get(labels, 0.0) + value
        named = {labels: printed(value, counter.unit) for labels, value in totals.items()}
        return {labels: value for labels, value in named.items() if value is not None}

    def _readings(self, row: Metric) -> list[Reading]:
        if self.instances and row.mig:
            return self._of_instance.get(row.name, [])
        return [] if self.instances and row.name in _CARD_ALONE else self._of_card.get(row.name, [])

    @cached_property
    def _of_card(self) -> dict[str, list[Reading]]:
        return _by_metric(self.card.readings)

    @cached_property
    def _of_instance(self) -> dict[str, list[Reading]]:
        """Memory and activity are those of the GPU instance, which its first compute instance reports."""
        return _by_metric(self.instances[0].readings)


def entities(cards: Iterable[Card]) -> Iterator[Entity]:
    for card in cards:
        tenants = grouped(card.tenants, lambda tenant: tenant.mig)
        parts: dict[int | str, list[Instance]] = {}
        for instance in card.instances:
            number = instance.mig.gpu_instance_id
            parts.setdefault(instance.mig.uuid if number == UNKNOWN else number, []).append(instance)
        for instances in parts.values():
            present = [tenant for instance in instances for tenant in tenants.get(instance.mig.uuid, ())]
            yield Entity(card, tuple(instances), tuple(present))
        if not parts:
            yield whole(card)


def whole(card: Card) -> Entity:
    return Entity(card, (), tuple(tenant for tenant in card.tenants if not tenant.mig))


def with_xid(card: Card) -> Card:
    """The card with 0 as its last XID if it had none and every XID is heard, as dcgm-exporter shows it."""
    has_xid = any(reading.metric == LAST_XID for reading in card.readings)
    if has_xid or card.fault or not card.ability.hears_xids:
        return card
    return replace(card, readings=(*card.readings, Reading(LAST_XID, 0.0)))


def unnamed(snapshot: Snapshot) -> list[int]:
    """List the indexes of cards whose rows name no pod, because several pods share the card or an instance of it."""
    shared = (
        entity.card.gpu.index
        for entity in entities(snapshot.cards)
        if entity.claims and not entity.only_pod and not entity.is_dynamic
    )
    return list(dict.fromkeys(shared))


def printed(value: float, unit: Unit) -> float | None:
    """Turn a base value into what DCGM prints. Most are whole numbers: MiB are cut, the rest is rounded.

    None if it is too large for a float.
    """
    quotient = value / unit.factor
    if not isfinite(quotient):
        return None
    return float(int(quotient)) if unit is MIB else rounded(quotient, unit)


def rounded(quotient: float, unit: Unit) -> float:
    return round(quotient, DECIMALS) if unit in FRACTIONS else float(round(quotient))


def _pods(claims: Iterable[Claim]) -> set[tuple[str, str]]:
    return {(claim.container.namespace, claim.container.pod) for claim in claims}


def _by_metric(readings: Iterable[Reading]) -> dict[str, list[Reading]]:
    return grouped(readings, lambda reading: reading.metric)


def _fits(reading: Reading, row: Metric) -> bool:
    if not isfinite(reading.value):
        return False
    return len(reading.labels) == len(row.own_labels) if row.own_labels else reading.labels == row.label_values
