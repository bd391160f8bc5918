"""The page of dcgm-exporter since 2.0: one row for each card, or for each GPU instance of a card."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from podgpu.catalog.row import Unit
from podgpu.model import Booking, Snapshot
from podgpu.views.dialects._dcgm import xid
from podgpu.views.dialects._dcgm.counters import Counter, Generation, select
from podgpu.views.dialects._dcgm.entity import DECIMALS, Entity, entities, rounded, told
from podgpu.views.dialects._dcgm.labels import claim_labels, container_labels, device_pairs, sorted_pairs
from podgpu.views.dialects._dcgm.options import Options
from podgpu.views.dialects._dcgm.tenancy import Name, Tenancy, is_booked, used
from podgpu.views.family import Family, block

Sample = tuple[str, float]


@dataclass(frozen=True, slots=True)
class Row:
    """An entity with the text of its labels. `shares` are its containers where they are to be told apart."""

    entity: Entity
    device: str
    holder: dict[str, str]
    shares: tuple[tuple[dict[str, str], list[Booking]], ...] = ()


def families(snapshot: Snapshot, options: Options, generation: Generation, hostname: str) -> list[Family]:
    selection = select(generation, options.collectors)
    tenancy = Tenancy.of(snapshot)
    rows = [
        _row(
            entity,
            tenancy,
            device_pairs(snapshot, entity, selection, hostname),
            split=options.per_container == "on",
        )
        for entity in entities(xid.heard(snapshot))
    ]
    page = (_family(counter, rows) for counter in selection.counters)
    return [family for family in page if family.samples]


def _row(entity: Entity, tenancy: Tenancy, device: str, *, split: bool) -> Row:
    claim = tenancy.holder(entity)
    holder = claim_labels(claim, entity, tenancy.pods) if claim else {}
    users = tenancy.bookings(entity)
    if not split or len(users.keys() | tenancy.claims(entity).keys()) <= 1:
        return Row(entity, device, holder)
    shares = tuple((_user_labels(name, entity, tenancy), bookings) for name, bookings in users.items())
    return Row(entity, device, holder, shares)


def _user_labels(name: Name, entity: Entity, tenancy: Tenancy) -> dict[str, str]:
    claim = tenancy.claims(entity).get(name)
    if claim:
        return claim_labels(claim, entity, tenancy.pods)
    return container_labels(tenancy.bookings(entity)[name][0].container)


def _family(counter: Counter, rows: Iterable[Row]) -> Family:
    samples = dict(sample for row in rows for sample in _samples(counter, row))
    return Family(counter.name, counter.kind, counter.help, counter.worth, samples)


def _samples(counter: Counter, row: Row) -> Iterator[Sample]:
    parts = _parts(counter, row)
    names = counter.rows[0].own_labels
    for values, value in row.entity.values(counter).items():
        if parts:
            fitted = _within(value, list(parts.values()), counter.unit)
            yield from zip(parts, fitted, strict=True)
            yield block(row.device), max(0.0, round(value - sum(fitted), DECIMALS))
        else:
            own = dict(zip(names, values, strict=True)) | _last_xid(counter, value)
            yield block(row.device, sorted_pairs(row.holder | own)), value


def _within(value: float, parts: list[float], unit: Unit) -> list[float]:
    """Cut parts that are more than the value together by one ratio: then they add up to it.

    They are measured each for itself, and work of two containers may overlap in time.
    """
    value = max(0.0, value)
    if sum(parts) <= value:
        return parts
    weights = [part / max(parts) for part in parts]
    edges = [rounded(value * (upto / sum(weights)), unit) for upto in accumulate(weights)]
    return [round(end - start, DECIMALS) for start, end in pairwise([0.0, *edges])]


def _parts(counter: Counter, row: Row) -> dict[str, float]:
    """What of the value is whose. Nothing where nobody can say, or where the value is not the entity's own."""
    metric = counter.rows[0]
    if not is_booked(metric.name) or not row.entity.owns(metric):
        return {}
    found = {}
    for labels, bookings in row.shares:
        own = used(metric.name, bookings)
        part = None if own is None else told(own, counter.unit)
        if part is not None:
            found[block(row.device, sorted_pairs(labels))] = part
    return found


def _last_xid(counter: Counter, code: float) -> dict[str, str]:
    if counter.rows[0].name != xid.LAST:
        return {}
    return {"err_code": str(int(code)), "err_msg": xid.words(int(code))}
