"""The page of dcgm-exporter since 2.0: a row for each card, or for each GPU instance of a card.

A device that several containers share can have a row for each of them instead.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise

from podgpu.catalog.row import Unit
from podgpu.model import Card, Snapshot
from podgpu.views.dialects._dcgm import derived, xid
from podgpu.views.dialects._dcgm.collectors import Collectors
from podgpu.views.dialects._dcgm.counters import DECIMALS, Counter, Generation, Selection, select
from podgpu.views.dialects._dcgm.entity import Entity, entities, printed, rounded
from podgpu.views.dialects._dcgm.labels import PodLabels, RowLabels, device_labels, key
from podgpu.views.dialects._dcgm.occupant import Occupant, is_dynamic, only_pod
from podgpu.views.dialects._dcgm.options import DcgmPageOptions
from podgpu.views.series import Family, Key, Labels


@dataclass(frozen=True, slots=True)
class EntityRow:
    """An entity with its labels. `shares` are the containers on it, if each is to have a row of its own."""

    entity: Entity
    device: Labels
    holder: RowLabels
    key: Key
    shares: tuple[tuple[RowLabels, Occupant], ...] = ()


def families(
    snapshot: Snapshot,
    options: DcgmPageOptions,
    generation: Generation,
    choose: Callable[[Generation, Collectors | None], Selection] = select,
) -> list[Family]:
    selection = choose(generation, options.collectors)
    pods = PodLabels(
        {pod.uid: pod for pod in snapshot.pods},
        uid=options.pod_uid == "on",
        own=options.pod_labels == "on",
    )
    rows = [
        _row(
            entity,
            pods,
            device_labels(snapshot, entity, selection, generation.hostname),
            split=options.per_container == "on",
        )
        for entity in entities(_cards(snapshot, selection))
    ]
    page = (_family(counter, rows, generation) for counter in selection.counters)
    return [family for family in page if family.samples]


def _cards(snapshot: Snapshot, selection: Selection) -> Iterable[Card]:
    cards = map(xid.heard, snapshot.cards)
    return derived.completed(snapshot, cards) if selection.is_derived else cards


def _row(entity: Entity, pods: PodLabels, device: Labels, *, split: bool) -> EntityRow:
    present = entity.occupants
    claims = only_pod(present)
    holder = pods.of_holder(claims, entity) if claims else RowLabels()
    is_split = len(present) > 1 and (split or is_dynamic(present))
    shares = [(pods.of_occupant(one, entity), one) for one in present if is_split]
    return EntityRow(entity, device, holder, key(device, holder), tuple(shares))


def _family(counter: Counter, rows: Iterable[EntityRow], generation: Generation) -> Family:
    samples = dict(sample for row in rows for sample in _samples(counter, row))
    return Family(
        counter.name,
        counter.kind,
        counter.help,
        counter.worth,
        samples,
        counter.group,
        generation.writing(counter),
    )


def _samples(counter: Counter, row: EntityRow) -> Iterator[tuple[Key, float]]:
    parts = _parts(counter, row)
    names = counter.rows[0].own_labels
    for values, value in row.entity.values(counter).items():
        if parts:
            fitted = _within(value, list(parts.values()), counter.unit)
            yield from zip(parts, fitted, strict=True)
            yield (row.device,), max(0.0, round(value - sum(fitted), DECIMALS))
            continue
        own = {name: text for name, text in zip(names, values, strict=True) if text}
        own |= _last_xid(counter, value)
        for labels in _repeated(counter, row):
            yield (key(row.device, labels.also(own)) if own or labels is not row.holder else row.key), value


def _repeated(counter: Counter, row: EntityRow) -> Iterable[RowLabels]:
    """Whose rows have the whole value, because it cannot be divided.

    What could be divided is not given to everybody in a moment in which nothing was measured.
    """
    is_unknown = row.entity.is_booked(counter.rows[0]) and row.entity.card.ability.sees_processes
    return [labels for labels, _ in row.shares if not is_unknown] or [row.holder]


def _within(value: float, parts: list[float], unit: Unit) -> list[float]:
    """Cut parts that add up to more than the value, all by the same ratio, so that they add up to it.

    Each is measured by itself, and the work of two containers may overlap in time.
    """
    value = max(0.0, value)
    if sum(parts) <= value:
        return parts
    weights = [part / max(parts) for part in parts]
    edges = [rounded(value * (upto / sum(weights)), unit) for upto in accumulate(weights)]
    return [round(end - start, DECIMALS) for start, end in pairwise([0.0, *edges])]


def _parts(counter: Counter, row: EntityRow) -> Mapping[Key, float]:
    """How much of the value each container has. Empty if that is unknown, or if the value is not the entity's own."""
    metric = counter.rows[0]
    if not row.entity.is_booked(metric):
        return {}
    found = {}
    for labels, occupant in row.shares:
        own = occupant.used(metric.name)
        part = None if own is None else printed(own, counter.unit)
        if part is not None:
            found[key(row.device, labels)] = part
    return found


def _last_xid(counter: Counter, code: float) -> dict[str, str]:
    if counter.rows[0].name != xid.LAST:
        return {}
    return {"err_code": str(int(code)), "err_msg": xid.words(int(code))}
