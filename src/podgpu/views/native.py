"""The snapshot as podgpu's own metric families.

The catalog says what exists; only what concerns presence and the agent itself is known here by name. What is booked to
containers is in `bookings`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import isfinite

from podgpu import catalog
from podgpu.catalog.agent_parts import ATTRIBUTION, PARTS, SHARING
from podgpu.catalog.renames import Rename, in_force
from podgpu.catalog.row import Scope, Worth
from podgpu.model import Card, PartStatus, Reading, Snapshot
from podgpu.views import bookings
from podgpu.views.series import EVERYTHING, NODE, POD, Family, Labels, SeriesFilter, count

_ROWS = catalog.families()
_SILENT = (SHARING, ATTRIBUTION)  # parts that have no state to show
_FAMILIES = {
    name: (rows, Worth(max(row.worth.value for row in rows)), catalog.group_of(rows[0])) for name, rows in _ROWS.items()
}
_LABEL_NAMES = {name: rows[0].label_names for name, rows in _ROWS.items()}
# Whole families of little worth, and single series of others by the values of their labels.
_DETAIL = frozenset(name for name, rows in _ROWS.items() if all(row.is_detail for row in rows))
_DETAIL_SERIES = frozenset((name, row.label_values) for name, rows in _ROWS.items() for row in rows if row.is_detail)


class _FilledFamilies:
    """All families of the catalog, being filled."""

    def __init__(self, choice: SeriesFilter) -> None:
        self._left_out = frozenset(name for name in _FAMILIES if not choice.has_native(name))
        self._detail = choice.detail
        self.families = {
            name: Family(name, rows[0].kind, rows[0].help, worth, group=group)
            for name, (rows, worth, group) in _FAMILIES.items()
        }
        # Every card has the same few label values of its own: each is made once per page.
        self._own: dict[tuple[str, tuple[str, ...]], Labels] = {}

    def add(self, scope: Scope, subject: Labels, readings: Iterable[Reading]) -> None:
        """Take readings of one subject, whose labels are those of the scope."""
        prefix, families, bare = scope.prefix, self.families, (subject,)
        for reading in readings:
            name, value, labels = prefix + reading.metric, reading.value, reading.labels
            names = _LABEL_NAMES.get(name)
            if names is None or len(names) != len(labels) or not isfinite(value):
                continue
            if name in self._left_out:
                continue
            if not self._detail and (name in _DETAIL or (name, labels) in _DETAIL_SERIES):
                continue
            key = (subject, self._own_labels(name, labels)) if labels else bare
            families[name].samples[key] = value

    def filled(self) -> list[Family]:
        return [family for family in self.families.values() if family.samples]

    def _own_labels(self, name: str, values: tuple[str, ...]) -> Labels:
        own = self._own.get((name, values))
        if own is None:
            own = self._own[name, values] = Labels(_LABEL_NAMES[name], values)
        return own


def families(
    snapshot: Snapshot, series_dropped: Mapping[str, int], *, choice: SeriesFilter = EVERYTHING
) -> list[Family]:
    """`series_dropped` is what the series limit has cut so far, by family."""
    page = _FilledFamilies(choice)
    node = Labels(Scope.AGENT.labels, (snapshot.node,))
    page.add(Scope.AGENT, node, _agent(snapshot, series_dropped))
    for card in snapshot.cards:
        place = Labels(Scope.GPU.labels, (snapshot.node, str(card.gpu.index), card.gpu.uuid))
        page.add(Scope.GPU, place, [*card.readings, *_presence(snapshot, card)])
        for mig, readings in ((instance.mig, instance.readings) for instance in card.instances):
            page.add(Scope.MIG, Labels(Scope.MIG.labels, (*place.values, mig.uuid, mig.profile)), readings)
        for scope, subject, booked in bookings.of_card(card, place, by_pod=choice.level == POD):
            if choice.has_scope(scope):
                page.add(scope, subject, booked)
        if choice.has_scope(Scope.PROCESS):
            for subject, used in bookings.of_processes(card, place):
                page.add(Scope.PROCESS, subject, used)
    if choice.level != NODE:
        for labels in bookings.of_pods(snapshot):
            page.families[bookings.POD_INFO].put(1.0, labels)
        for labels, seconds in bookings.of_unplaced(snapshot):
            page.families[bookings.UNPLACED].add(seconds, labels)
    page.add(Scope.AGENT, node, [Reading("series", 0.0)])
    old = under_old_names(page.filled(), in_force(snapshot.version))
    found = choice.apply([*page.filled(), *old])
    # The number counts itself.
    page.add(Scope.AGENT, node, [Reading("series", float(count(found)))])
    return found


def under_old_names(filled: Iterable[Family], renames: Iterable[Rename]) -> list[Family]:
    """Repeat renamed families under the names that they had."""
    by_name = {family.name: family for family in filled}
    return [
        replace(by_name[rename.new], name=rename.old, help=f"Renamed to {rename.new}; goes in {rename.until}.")
        for rename in renames
        if rename.new in by_name
    ]


def _presence(snapshot: Snapshot, card: Card) -> Iterator[Reading]:
    gpu, fault = card.gpu, card.fault
    yield Reading("up", float(fault is None))
    if card.ability.hears_xids and fault is None:
        raised = [reading.value for reading in card.readings if reading.metric == "xid_errors_total"]
        yield Reading("xids_total", float(sum(raised)))
    yield _info(
        Scope.GPU,
        "info",
        {
            "model": gpu.model,
            "driver_version": snapshot.driver_version,
            "pci_bus_id": gpu.pci_bus_id,
            "minor": "" if gpu.minor is None else str(gpu.minor),
            "architecture": gpu.architecture,
            "compute_capability": gpu.compute_capability,
            "vbios": gpu.vbios,
            "mig_enabled": str(gpu.mig_enabled).lower(),
        },
    )
    if fault is not None:
        yield Reading("problem", 1.0, (fault.reason, fault.call))
    for refused in card.refused:
        yield Reading("refused", 1.0, (refused.reason, refused.call))


def _agent(snapshot: Snapshot, series_dropped: Mapping[str, int]) -> Iterator[Reading]:
    yield _info(
        Scope.AGENT,
        "build_info",
        {
            "version": snapshot.version,
            "driver_version": snapshot.driver_version,
            "nvml_version": snapshot.nvml_version,
            "demo": str(snapshot.demo or snapshot.replayed).lower(),
        },
    )
    for guest in snapshot.guests or ():
        yield _info(Scope.AGENT, "guest_gpu_info", {"pci_bus_id": guest.pci_bus_id, "model": guest.model})
    yield Reading("up", float(snapshot.up))
    yield Reading("snapshot_timestamp_seconds", snapshot.taken_at)
    yield Reading("interval_seconds", snapshot.interval_seconds)
    if snapshot.insight is not None:
        yield Reading("idle_after_seconds", snapshot.insight.idle_after_seconds)
    if snapshot.watched_since is not None:
        yield Reading("watched_since_timestamp_seconds", snapshot.watched_since)
    for part in snapshot.parts:
        yield from _part(part)
    for place, number in _errors(snapshot).items():
        yield Reading("errors_total", float(number), place)
    for family, number in series_dropped.items():
        yield Reading("series_dropped_total", float(number), (family,))


def _errors(snapshot: Snapshot) -> dict[tuple[str, str], int]:
    """Count errors by part and reason, those that have not happened included."""
    shown = (PARTS[part.name] for part in snapshot.parts if part.name in PARTS)
    expected = {(part.name, reason): 0 for part in (*shown, *_SILENT) for reason in part.errors}
    return expected | {(error.source, error.reason): error.count for error in snapshot.errors}


def _part(part: PartStatus) -> Iterator[Reading]:
    source = (part.name,)
    yield Reading("source_up", float(part.up), source)
    yield Reading("source_duration_seconds", part.duration_seconds, source)
    if part.fault is not None and not part.up:
        yield Reading("source_problem", 1.0, (part.name, part.fault.reason))
    if part.age_seconds is not None:
        yield Reading("source_age_seconds", part.age_seconds, source)


def _info(scope: Scope, name: str, facts: Mapping[str, str]) -> Reading:
    """Let the catalog decide which facts are labels, and in which order."""
    return Reading(name, 1.0, tuple(facts[label] for label in _LABEL_NAMES[scope.prefix + name]))
