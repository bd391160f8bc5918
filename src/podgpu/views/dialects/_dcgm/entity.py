"""What a row is about: a card, or a GPU instance of a card that is split by MIG."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import isfinite

from podgpu.catalog.row import Metric, Unit
from podgpu.catalog.units import MIB
from podgpu.model import UNKNOWN, Card, Instance, Reading, Snapshot, Tenant
from podgpu.views.dialects._dcgm.counters import DECIMALS, Counter, is_fraction
from podgpu.views.dialects._dcgm.occupant import MEMORY, Occupant, is_booked, is_dynamic, occupants, only_pod
from podgpu.views.tenants import is_outsider

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


@dataclass(frozen=True)
class Entity:
    """`instances` are the compute instances of one GPU instance; a whole card has none. `tenants` are those on it."""

    card: Card
    instances: tuple[Instance, ...] = ()
    tenants: tuple[Tenant, ...] = ()

    @cached_property
    def occupants(self) -> list[Occupant]:
        """The pods' containers on it."""
        return occupants(one for one in self.tenants if not is_outsider(one.container))

    @property
    def profile(self) -> str:
        """The profile of the GPU instance. That of a compute instance has its own part in front of it."""
        return _COMPUTE_PART.sub("", self.instances[0].mig.profile, count=1) if self.instances else ""

    def is_booked(self, row: Metric) -> bool:
        """Whether it is known how its containers divide this reading. On a GPU instance that is memory alone."""
        return row.name == MEMORY if self.instances else is_booked(row.name)

    def values(self, counter: Counter) -> dict[tuple[str, ...], float]:
        """The values in the counter's unit, by the values of the row's own labels. Most rows have no such labels."""
        totals: dict[tuple[str, ...], float] = {}
        for row in counter.rows:
            for labels, value in self._row(row).items():
                totals[labels] = totals.get(labels, 0.0) + value
        named = {labels: printed(value, counter.unit) for labels, value in totals.items()}
        return {labels: value for labels, value in named.items() if value is not None}

    def _row(self, row: Metric) -> dict[tuple[str, ...], float]:
        fitting = (one for one in self._readings(row) if _fits(one, row))
        return {one.labels if row.own_labels else (): one.value for one in fitting}

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
        tenants: dict[str, list[Tenant]] = {}
        for tenant in card.tenants:
            tenants.setdefault(tenant.mig, []).append(tenant)
        parts: dict[int | str, list[Instance]] = {}
        for one in card.instances:
            number = one.mig.gpu_instance_id
            parts.setdefault(one.mig.uuid if number == UNKNOWN else number, []).append(one)
        for instances in parts.values():
            present = [tenant for one in instances for tenant in tenants.get(one.mig.uuid, ())]
            yield Entity(card, tuple(instances), tuple(present))
        if not parts:
            yield whole(card)


def unnamed(snapshot: Snapshot) -> list[int]:
    """Index the cards on which rows name nobody, because several pods were given the card or an instance of it."""
    shared = (
        entity.card.gpu.index
        for entity in entities(snapshot.cards)
        if any(one.claim for one in entity.occupants)
        and not only_pod(entity.occupants)
        and not is_dynamic(entity.occupants)
    )
    return list(dict.fromkeys(shared))


def whole(card: Card) -> Entity:
    return Entity(card, (), tuple(one for one in card.tenants if not one.mig))


def printed(value: float, unit: Unit) -> float | None:
    """Turn a base value into what DCGM prints. Most are whole numbers: MiB are cut, the rest is rounded.

    None if it is too large for a number.
    """
    quotient = value / unit.factor
    if not isfinite(quotient):
        return None
    return float(int(quotient)) if unit is MIB else rounded(quotient, unit)


def rounded(quotient: float, unit: Unit) -> float:
    return round(quotient, DECIMALS) if is_fraction(unit) else float(round(quotient))


def _by_metric(readings: Iterable[Reading]) -> dict[str, list[Reading]]:
    found: dict[str, list[Reading]] = {}
    for one in readings:
        found.setdefault(one.metric, []).append(one)
    return found


def _fits(reading: Reading, row: Metric) -> bool:
    if not isfinite(reading.value):
        return False
    return (
        len(reading.labels) == len(row.own_labels) if row.own_labels else reading.labels == row.label_values
    )
